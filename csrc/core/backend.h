/*
 * The seam between the core and an engine. The core checks arguments, keeps handles, decides what
 * becomes of a job (retry or dead), and words errors; a backend speaks to one kind of server.
 *
 * Rules for every function below:
 *  - Any thread, any number at once; a backend locks what it shares. A blocked claim delays nobody.
 *  - It returns CWIST_SUCCESS or a code, having set the cause with cwist_jq__fail(). The text names
 *    the server's own words; the core adds operation, queue and server.
 *  - `deadline` is a moment of cwist_jq__now(). A function may overrun it by 150 ms at most.
 *  - While the server cannot be reached it tries again, backing off, until the deadline: then IO.
 *    A command that was sent and not answered is repeated only when that is harmless; otherwise the
 *    result is OUTCOME_UNKNOWN. What the server refused may be tried again.
 *  - A missing group, stream or consumer is made again inside the same call.
 *  - A batch goes in pieces of a bounded size, one round trip a piece.
 */
#ifndef CWIST_JQ_BACKEND_H
#define CWIST_JQ_BACKEND_H

#include "core/internal.h"

/* Not a public code: the slice ended, the claim goes on. */
#define CWIST_JQ_PENDING 1

/* How many jobs are ended at once: what is kept of them fits a small thread stack. */
#define CWIST_JQ_PIECE 256

/* Why a job is dead; the number is part of the wire format (docs/wire-format.md). */
typedef enum cwist_jq__cause {
    CWIST_JQ_CAUSE_NACKED = 1,
    CWIST_JQ_CAUSE_LEASE_EXPIRED = 2,
    CWIST_JQ_CAUSE_MALFORMED = 3,
    CWIST_JQ_CAUSE_REJECTED = 4
} cwist_jq__cause;

/* The word of a cause on the wire: "nacked", "lease-expired", "malformed", "rejected". */
const char *cwist_jq__cause_name(cwist_jq__cause cause);
/* Logs one line about those jobs, dead for one cause, whose code is SUCCESS. */
void cwist_jq__log_dead(cwist_jq__queue *queue, int level, cwist_jq__cause cause,
                        cwist_jq__job *const *jobs, size_t count, const int *codes);

/*
 * A dead letter as a backend reads it. What `told` points to, `place` and `mark` live in the page.
 */
typedef struct cwist_jq__letter {
    cwist_job_dead_letter_t told;
    const char *place; /* names the letter to the server; the backend's own */
    size_t place_len;
    const char *mark; /* where the list goes on behind this letter */
} cwist_jq__letter;

struct cwist_jq__ops {
    const char *engine; /* "redis", "nats", "memory" */

    /*
     * Makes conn->impl and proves that the server answers, that the credentials hold and that it is
     * new enough. On failure it leaves nothing behind.
     */
    int (*conn_open)(cwist_jq__conn *conn, uint64_t deadline);
    /* One round trip that proves that the server answers; changes nothing. */
    int (*ping)(cwist_jq__conn *conn, uint64_t deadline);
    /* The last user is gone. Never waits for a server longer than 100 ms. */
    void (*conn_close)(cwist_jq__conn *conn);

    /* Makes queue->impl. Sends nothing: a queue of a producer must not change the server. */
    int (*queue_open)(cwist_jq__queue *queue);
    /* The last user is gone. Takes this handle's leftovers off the server when that is quick. */
    void (*queue_close)(cwist_jq__queue *queue);

    /*
     * TOO_LARGE, naming the limit, when the engine takes no job of this size with these headers, by
     * what is known of the server. Sends nothing.
     */
    int (*check_size)(cwist_jq__queue *queue, const cwist_job_item_t *item);
    /*
     * Stores `count` (1 to CWIST_JOB_BATCH_MAX) jobs in this order, with all_or_none in one step.
     * The core checked the items; a type of NULL or "" is none. Fills in every one of stored: code,
     * duplicate and id, NOT_SENT for those that were not tried. What was stored stays stored. It
     * returns the first code that is not SUCCESS, whose text is then set. With a dedupe key a lost
     * reply is no outcome unknown: the command is sent again. FULL when queue->max_length jobs are
     * there already; of all_or_none items duplicates do not count as failed.
     */
    int (*enqueue)(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                   bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored);

    /* Makes claim->impl. */
    int (*claim_start)(cwist_jq__claim *claim);
    /*
     * Waits until `until` for deliveries. SUCCESS: the first *count (1 to claim->most) of jobs are
     * the caller's. PENDING: `until` came first. TIMEOUT: claim->deadline came and the server had
     * no job. IO: it came and the server could not be reached. With a deadline already passed it
     * polls the server once. Lapsed and due jobs are brought back on the way, at most 250 ms late.
     */
    int (*claim_wait)(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs, size_t *count);
    /*
     * Acks `count` jobs as ack() does and, in the same round trip, polls once for claim->most
     * deliveries. codes is always filled in. SUCCESS: *got (it may be 0) of next are the caller's.
     * A failure is that of the poll, as in claim_wait(), which may be called after SUCCESS.
     */
    int (*ack_and_poll)(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                        int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got);
    /* Gives up what is still asked for; what arrives is given to cwist_jq__hand_back(). */
    void (*claim_end)(cwist_jq__claim *claim);

    /*
     * The ends of deliveries, `count` (1 to CWIST_JQ_PIECE) of one queue at once. Each of
     * codes is filled in: LEASE_LOST when the job was given away, and then nothing changed for it;
     * NOT_SENT when it was not tried. They return the first code that is not SUCCESS, whose text is
     * then set. The jobs stay the caller's.
     */
    int (*ack)(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count, uint64_t deadline,
               int *codes);
    /* delays_ms: for each job */
    int (*retry)(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                 const uint64_t *delays_ms, uint64_t deadline, int *codes);
    /* delay_ms not 0: delayed, and no attempt spent; UNSUPPORTED where the server has no such way
     */
    int (*release)(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                   uint64_t delay_ms, uint64_t deadline, int *codes);
    /* Moves the jobs to the dead letters with job->attempts; text may be NULL. */
    int (*bury)(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes);
    /* Restarts the visibility clocks; sets lease_starts and lease_ends of those that are ours. */
    int (*extend)(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                  uint64_t deadline, int *codes);

    int (*dead_count)(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count);
    /* Milliseconds since 1970 by the server's clock, in which letters tell when they died. */
    int (*server_time)(cwist_jq__queue *queue, uint64_t deadline, uint64_t *now_ms);
    /*
     * Adds up to `most` (1 to CWIST_JOB_BATCH_MAX) dead letters without payloads to the page,
     * newest or oldest first, from the mark `after` on (NULL: from the beginning). *more: others
     * follow. Letters that come or go meanwhile shift no others. INVALID_PARAM when the mark is
     * none.
     */
    int (*dead_list)(cwist_jq__queue *queue, const char *after, size_t most, bool oldest_first,
                     uint64_t deadline, cwist_job_dead_page_t *page, bool *more);
    /* Adds the letter with that id, and its payload when asked for, to the page; or NOT_FOUND. */
    int (*dead_find)(cwist_jq__queue *queue, const char *id, bool payload, uint64_t deadline,
                     cwist_job_dead_page_t *page);
    /*
     * Move letters (1 to CWIST_JQ_PIECE) back into the queue with no attempts spent, or delete
     * them. Each of codes is filled in: NOT_FOUND for one that is not there any more, NOT_SENT for
     * one that was not tried. They return the first code that is not SUCCESS, whose text is then
     * set.
     */
    int (*dead_requeue)(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                        size_t count, uint64_t deadline, int *codes);
    int (*dead_remove)(cwist_jq__queue *queue, const cwist_jq__letter *const *letters, size_t count,
                       uint64_t deadline, int *codes);

    /* Fills in what the server knows: ready to paused. */
    int (*stats)(cwist_jq__queue *queue, uint64_t deadline, cwist_job_stats_t *stats);
    /*
     * Deletes a bounded piece of the jobs that were ready or delayed when *mark was first used (it
     * begins as 0 and is the backend's own) and adds their number to *count. *more: call again.
     */
    int (*purge)(cwist_jq__queue *queue, uint64_t deadline, uint64_t *mark, uint64_t *count,
                 bool *more);
    /* Paused claims bring nothing, and wait on; what arrives meanwhile is handed back. */
    int (*pause)(cwist_jq__queue *queue, bool paused, uint64_t deadline);
};

/*
 * Adds a copy of a letter to a page, for a backend that reads one (letters.c). The strings end in
 * NUL or are NULL; payload and headers are copied too.
 */
int cwist_jq__page_add(cwist_job_dead_page_t *page, const cwist_jq__letter *letter);

/* NULL when the engine was left out of the build. */
extern const cwist_jq__ops *const cwist_jq__backend_redis;
extern const cwist_jq__ops *const cwist_jq__backend_nats;
/* It needs nothing, so it is in every build. */
extern const cwist_jq__ops *const cwist_jq__backend_memory;

#endif
