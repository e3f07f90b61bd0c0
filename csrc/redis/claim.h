/* What the files of a claim share: its lanes and its state. */
#ifndef CWIST_JQ_REDIS_CLAIM_H
#define CWIST_JQ_REDIS_CLAIM_H

#include "redis/redis.h"

/* Not a status for callers: the step is done, take the next. */
#define CWIST_JQ_GO_ON 3

/*
 * Commands under way on a link of their own, across slices. A claim has two lanes: one reads jobs
 * and may be blocked by the server, the other ticks meanwhile.
 */
typedef struct cwist_jq__redis_lane {
    cwist_jq__redis_link *link; /* NULL: nothing is under way */
    /* what to send, in this order */
    bool tick;
    bool settle; /* the tick settles the visibility */
    bool reap;
    bool read;
    size_t most;                /* entries that the read asks for */
    uint64_t block_ms;          /* 0: the read does not block */
    cwist_jq__redis_acks *acks; /* go before all else; NULL: none, or they were told */
    /* what came of it */
    cwist_jq__redis_endpoint route;
    uint64_t overdue; /* no answer by then: the link is dead */
    uint64_t quiet;   /* the read had no answer at that moment */
    unsigned expected;
    unsigned acked; /* so many of the replies are about the acks */
    bool sent;      /* bytes left */
    cwist_jq__redis_replies replies;
} cwist_jq__redis_lane;

typedef struct cwist_jq__redis_claim {
    cwist_jq__redis_lane reader;
    cwist_jq__redis_lane ticker;
    uint64_t limit;    /* answers that come after the deadline are waited for until then */
    bool fresh;        /* the last read was empty, right after a tick that left nothing to do */
    bool tick_next;    /* the next read must go with a tick */
    bool polled_last;  /* a read was sent after the deadline */
    unsigned regroups; /* how often in a row the group was missing */
    cwist_jq__backoff backoff;
    uint64_t retry_at; /* nothing is sent before */
    cwist_jq__backoff tick_backoff;
    uint64_t tick_at;   /* no tick beside the blocked read before */
    int error;          /* what will be told when no success comes first; 0: none */
    bool fatal;         /* trying again is of no use */
    uint64_t report_at; /* when to tell a fatal error: a caller's loop must not spin */
    char error_text[CWIST_JQ_REDIS_TEXT_SIZE];
} cwist_jq__redis_claim;

/* Sends what the lane says over a link that is taken or made by `deadline`. */
int cwist_jq__redis_lane_start(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane,
                               uint64_t deadline);
/*
 * Waits until `until` for all replies. SUCCESS: they are there and the link is at rest again.
 * PENDING: not yet. Anything else ended the lane. `ask` is asked in between, when set.
 */
int cwist_jq__redis_lane_wait(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane,
                              uint64_t until, const cwist_jq__claim *ask);
/* Replies that have begun to arrive hold jobs that are already ours, however long they take. */
bool cwist_jq__redis_lane_arriving(const cwist_jq__redis_lane *lane);
/* Ends the lane, its link and its replies. */
void cwist_jq__redis_lane_close(cwist_jq__redis_lane *lane);
/* The answer of the tick, and of the read; both have come. */
const redisReply *cwist_jq__redis_lane_ticked(const cwist_jq__redis_lane *lane);
const redisReply *cwist_jq__redis_lane_answer(const cwist_jq__redis_lane *lane);

/* claim.c */

/* Sets when a claim that begins to wait stops waiting for answers. */
void cwist_jq__redis_claim_limit(const cwist_jq__claim *claim);
/* Whether the visibility is settled, so that jobs may be read; notes that they are. */
bool cwist_jq__redis_claim_may_read(const cwist_jq__claim *claim);
/* Says what the next read that does not block is sent with. */
void cwist_jq__redis_claim_plan_poll(const cwist_jq__claim *claim);
/* Takes in the reader's answers: as claim_wait(), GO_ON when no job is among them. */
int cwist_jq__redis_claim_take(const cwist_jq__claim *claim, cwist_jq__job **jobs, size_t *count);

/* claim_read.c: what an answer means. */

/* Makes a missing group again. GO_ON, or why not. */
int cwist_jq__redis_make_group(const cwist_jq__claim *claim);
/* Takes in a tick's answer. SUCCESS, GO_ON (send it once more), or what went wrong. */
int cwist_jq__redis_take_tick(const cwist_jq__claim *claim, const cwist_jq__redis_lane *lane,
                              const redisReply *reply, bool *more);
/*
 * Takes in a read's answer. SUCCESS: the first *count of jobs. GO_ON: *empty tells whether there is
 * none.
 */
int cwist_jq__redis_take_read(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane,
                              cwist_jq__job **jobs, size_t *count, bool *empty);
/* A fault in an answer as a claim sees it: AGAIN for all that may pass. */
int cwist_jq__redis_claim_fault(const cwist_jq__claim *claim, const cwist_jq__redis_endpoint *from,
                                const char *command, const redisReply *reply);

#endif
