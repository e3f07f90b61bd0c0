/*
 * What the files of the Redis backend share.
 *
 *   request.c    commands as bytes             handshake.c  a new link, ready for use
 *   replies.c    replies in few blocks         pool.c       links at rest
 *   link.c       one connection                route.c      the right node of a cluster
 *   reply.c      what an error answer means    entry.c      a stream entry becomes a delivery
 *   call.c       one exchange, and retrying    tick.c       recovery and its timetable
 *   piece.c      many items in one exchange    claim.c, claim_*.c   claims
 *   letter.c     a dead record as it is told
 *   enqueue.c, store.c, ack.c, settle.c, dead.c, upkeep.c, backend.c    the operations
 *
 * Besides the codes of the public headers a function may return CWIST_JQ_AGAIN: the server refused
 * for now. Who retries turns it into REFUSED when the deadline comes.
 */
#ifndef CWIST_JQ_REDIS_PRIVATE_H
#define CWIST_JQ_REDIS_PRIVATE_H

#include <hiredis/hiredis.h>

#include "core/backend.h"
#include "platform/clock.h"
#include "platform/thread.h"
#include "redis/script.h"
#include "tls/tls.h"

#define CWIST_JQ_AGAIN 2

/* ---- requests (request.c): any error sticks and is told by sending ---- */

#define CWIST_JQ_REDIS_NAMES 8
#define CWIST_JQ_REDIS_BORROWED 128

/* Bytes of the caller's that are sent from where they stand. */
typedef struct cwist_jq__redis_borrowed {
    const void *data;
    size_t len;
    size_t at; /* their place in the request's own bytes */
} cwist_jq__redis_borrowed;

/* Commands written one behind the other. Start with a zeroed struct. */
typedef struct cwist_jq__redis_request {
    char *data;
    size_t len;
    size_t cap;
    size_t borrowed_len; /* of all parts */
    unsigned borrowed;
    unsigned commands;
    bool failed;
    const char *names[CWIST_JQ_REDIS_NAMES]; /* of the first commands */
    cwist_jq__redis_borrowed parts[CWIST_JQ_REDIS_BORROWED];
} cwist_jq__redis_request;

void cwist_jq__request_clear(cwist_jq__redis_request *request);
/* Empties the request and keeps its memory for the next, unless that is much. */
void cwist_jq__request_reset(cwist_jq__redis_request *request);
/* Begins a command of so many arguments, the name not counted; name is a static text. */
void cwist_jq__request_command(cwist_jq__redis_request *request, const char *name, size_t args);
void cwist_jq__request_bytes(cwist_jq__redis_request *request, const void *data, size_t len);
void cwist_jq__request_text(cwist_jq__redis_request *request, const char *text);
void cwist_jq__request_number(cwist_jq__redis_request *request, uint64_t number);
/* An argument that is only borrowed until the request was sent when it is long. */
void cwist_jq__request_borrow(cwist_jq__redis_request *request, const void *data, size_t len);
/* Notes a command whose bytes follow by request_raw(), as they stand on the wire. */
void cwist_jq__request_name(cwist_jq__redis_request *request, const char *name);
void cwist_jq__request_raw(cwist_jq__redis_request *request, const void *data, size_t len);
/* Begins a call of a script; its keys and args follow. By digest, or whole when `whole`. */
void cwist_jq__request_script(cwist_jq__redis_request *request,
                              const cwist_jq__redis_script *script, bool whole, size_t args);
/* The name of a command, for texts; of those behind the first few, that of the last of these. */
const char *cwist_jq__request_name_of(const cwist_jq__redis_request *request, unsigned command);

/* All bytes so far, borrowed ones too. */
static inline size_t cwist_jq__request_size(const cwist_jq__redis_request *request)
{
    return request->len + request->borrowed_len;
}

/* ---- replies (replies.c): those of one exchange, freed together ---- */

typedef struct cwist_jq__redis_block cwist_jq__redis_block;

/* Start with a zeroed struct, which holds no memory. It must not move while a link reads into it.
 */
typedef struct cwist_jq__redis_replies {
    redisReply **at; /* in the order of the commands */
    unsigned count;  /* how many have come */
    cwist_jq__redis_block *blocks;
    cwist_jq__redis_block *longs; /* long strings, each by itself */
    char *free;
    size_t left;
    size_t next_block;
} cwist_jq__redis_replies;

/* Makes room for the replies to so many commands. False: no memory. */
bool cwist_jq__replies_begin(cwist_jq__redis_replies *replies, unsigned commands);
void cwist_jq__replies_clear(cwist_jq__redis_replies *replies);
/*
 * Takes the block of a long string out of its replies: cwist_jq__free() it. NULL when the string is
 * short: it must be copied.
 */
void *cwist_jq__replies_keep(const redisReply *reply);
/* A reader whose privdata is to be the replies that it reads into. NULL: no memory. */
redisReader *cwist_jq__replies_reader(void);

/* ---- links (link.c): one connection, one user at a time ---- */

#define CWIST_JQ_REDIS_HOST_SIZE 256

/* Where a link leads. An empty host means the address of the URL. */
typedef struct cwist_jq__redis_endpoint {
    char host[CWIST_JQ_REDIS_HOST_SIZE];
    int port;
} cwist_jq__redis_endpoint;

bool cwist_jq__redis_endpoint_same(const cwist_jq__redis_endpoint *a,
                                   const cwist_jq__redis_endpoint *b);

/* What the server told about itself when the link was made. */
typedef struct cwist_jq__redis_hello {
    char version[32]; /* "": not told */
    bool cluster;
    uint64_t client_id; /* 0: not told */
} cwist_jq__redis_hello;

typedef struct cwist_jq__redis_link {
    struct cwist_jq__redis_link *next; /* in the pool */
    int fd;
    cwist_jq__tls *tls; /* NULL: not encrypted */
    redisReader *reader;
    cwist_jq__redis_endpoint endpoint;
    cwist_jq__redis_hello hello;
    unsigned generation;             /* of the pool when it was made */
    unsigned outstanding;            /* replies that have not come */
    bool partial;                    /* part of the next reply has come */
    uint64_t quiet;                  /* the last moment when nothing of the next reply had come */
    uint64_t heard;                  /* when bytes came last */
    bool slow;                       /* the answer did not come at once */
    cwist_jq__redis_request request; /* at hand for whoever has the link */
    char chunk[16384];
} cwist_jq__redis_link;

/* A connected link without a handshake. */
int cwist_jq__redis_link_connect(cwist_jq__redis_link **link, const cwist_jq__conn *conn,
                                 const cwist_jq__redis_endpoint *endpoint, uint64_t deadline);
void cwist_jq__redis_link_close(cwist_jq__redis_link *link); /* NULL is allowed */
/* True when the server has neither closed the idle link nor sent something unasked. */
bool cwist_jq__redis_link_is_idle(cwist_jq__redis_link *link);
/*
 * Sends the link's request; the answers will go to `replies`. *sent: how many bytes left. A command
 * of which not all bytes left was not executed.
 */
int cwist_jq__redis_link_send(cwist_jq__redis_link *link, cwist_jq__redis_replies *replies,
                              uint64_t deadline, size_t *sent);
/*
 * Reads the next reply into the replies given to send. PENDING at the deadline: the link is as good
 * as before. With a claim it looks up every slice and may return what cwist_jq__claim_check() says.
 */
int cwist_jq__redis_link_read(cwist_jq__redis_link *link, uint64_t deadline,
                              const cwist_jq__claim *claim);

/* ---- handshake.c ---- */

/* Connects, encrypts, authenticates, selects the database, and learns version, mode and client id.
 */
int cwist_jq__redis_link_open(cwist_jq__redis_link **link, const cwist_jq__conn *conn,
                              const cwist_jq__redis_endpoint *endpoint, uint64_t deadline,
                              const cwist_jq__claim *claim);

/* ---- pool.c: conn->impl ---- */

typedef struct cwist_jq__redis_server {
    cwist_jq__tls_context *tls; /* never changes; NULL: links are not encrypted */
    cwist_jq__mutex lock;       /* guards what follows */
    cwist_jq__redis_link *idle; /* newest first */
    unsigned idle_count;
    unsigned generation; /* raised when links at rest turned out to be stale */
    bool cluster;
    size_t payload_limit;
    _Atomic uint64_t round_trip; /* the shortest seen, in ms and one more; 0: none yet */
} cwist_jq__redis_server;

/* Notes a round trip that began at `started` and ends now. */
void cwist_jq__redis_note_trip(cwist_jq__conn *conn, uint64_t started);
/* The time that so many round trips to the server take, in ms: 0 when it is near. */
uint64_t cwist_jq__redis_trips_ms(const cwist_jq__conn *conn, unsigned trips);

/* An idle link or a new one. */
int cwist_jq__redis_take(cwist_jq__redis_link **link, cwist_jq__conn *conn,
                         const cwist_jq__redis_endpoint *endpoint, uint64_t deadline,
                         const cwist_jq__claim *claim);
/* An idle link, or NULL. */
cwist_jq__redis_link *cwist_jq__redis_take_idle(cwist_jq__conn *conn,
                                                const cwist_jq__redis_endpoint *endpoint);
/* Gives a link back; one with replies outstanding is closed. */
void cwist_jq__redis_give(cwist_jq__conn *conn, cwist_jq__redis_link *link);
/* Closes a link that broke, and with it the idle ones, which are likely as stale. */
void cwist_jq__redis_drop(cwist_jq__conn *conn, cwist_jq__redis_link *link);
/* Closes the idle links; those in use are closed when they are given back. */
void cwist_jq__redis_forget_links(cwist_jq__conn *conn);

/* ---- answers (reply.c) ---- */

typedef enum cwist_jq__redis_fault {
    CWIST_JQ_FAULT_NONE = 0,
    CWIST_JQ_FAULT_AGAIN,     /* reconnect and try again */
    CWIST_JQ_FAULT_FULL,      /* no memory, disk or replicas now */
    CWIST_JQ_FAULT_DENIED,    /* credentials or rights */
    CWIST_JQ_FAULT_REFUSED,   /* any other error */
    CWIST_JQ_FAULT_NO_GROUP,  /* the stream or its group is missing */
    CWIST_JQ_FAULT_NO_SCRIPT, /* not executed: send the script whole */
    CWIST_JQ_FAULT_MOVED      /* another node of the cluster has the key */
} cwist_jq__redis_fault;

/* What the reply says has gone wrong, also when a script passes another command's error on. */
cwist_jq__redis_fault cwist_jq__redis_fault_of(const redisReply *reply);
/* Sets the text "<command>: <the server's words>" and returns the code of the fault. */
int cwist_jq__redis_fault_fail(cwist_jq__redis_fault fault, const char *command,
                               const redisReply *reply);
#define CWIST_JQ_REDIS_TEXT_SIZE 512
/* Copies the thread's error text, to be told later. */
void cwist_jq__redis_keep_text(char text[CWIST_JQ_REDIS_TEXT_SIZE]);
/* PROTOCOL, naming the command whose reply had an unexpected shape. */
int cwist_jq__redis_odd_reply(const char *command);
bool cwist_jq__redis_is_number(const redisReply *reply);
/* A string reply with bytes, not nil or an error. */
bool cwist_jq__redis_is_text(const redisReply *reply);

/* ---- queues (backend.c): queue->impl ---- */

typedef struct cwist_jq__redis_keys {
    char *stream;
    char *delay;
    char *wait;
    char *dead;
    char *dead_body;
    char *conf;
    char *dedupe;
    char *xadd; /* the bytes of an XADD up to its fields */
} cwist_jq__redis_keys;

#define CWIST_JQ_REDIS_CURSOR_SIZE 48

typedef struct cwist_jq__redis_queue {
    cwist_jq__redis_keys keys; /* never changes */
    cwist_jq__mutex lock;      /* guards what follows */
    cwist_jq__redis_endpoint route;
    bool settled;         /* a claim of this handle has settled the visibility */
    bool group_seen;      /* the group was there */
    bool has_read;        /* jobs were asked for: from Redis 7.2 on that alone makes a consumer */
    bool tick_denied;     /* as a producer we may not run the recovery */
    bool tick_whole;      /* the server does not know the script */
    bool ack_known;       /* the server knows the script that acks a job with a dedupe key */
    uint64_t last_tick;   /* 0: never */
    uint64_t hint;        /* when the next job is due or lapses; NEVER: none known */
    uint64_t tick_credit; /* see tick.c */
    uint64_t next_reap;   /* when to look for consumers left behind */
    char cursor[CWIST_JQ_REDIS_CURSOR_SIZE];
    _Atomic size_t payload_size; /* of the larger jobs lately */
    atomic_bool paused;          /* claims are, as the last tick saw it */
} cwist_jq__redis_queue;

static inline cwist_jq__redis_queue *cwist_jq__redis_of(const cwist_jq__queue *queue)
{
    return queue->impl;
}

/* ---- routes (route.c) ---- */

/* The node for the queue; the URL's address when queue is NULL. */
void cwist_jq__redis_route_get(const cwist_jq__queue *queue, cwist_jq__redis_endpoint *endpoint);
/* Follows a MOVED answer that came from `from`. */
void cwist_jq__redis_route_follow(cwist_jq__queue *queue, const cwist_jq__redis_endpoint *from,
                                  const redisReply *moved);
/* The node does not answer: ask the URL's address again. */
void cwist_jq__redis_route_reset(cwist_jq__queue *queue);

/* ---- calls (call.c) ---- */

typedef struct cwist_jq__redis_call cwist_jq__redis_call;

/* Commands with their retry policy. Zero what is not set. */
struct cwist_jq__redis_call {
    cwist_jq__conn *conn;
    cwist_jq__queue *queue; /* NULL: about no queue */
    void (*build)(cwist_jq__redis_request *request, const cwist_jq__redis_call *call);
    const void *input;
    uint64_t deadline;
    const cwist_jq__claim *claim; /* asked while waiting, when set */
    bool repeatable;              /* sending it twice is harmless */
    unsigned skip;                /* the errors of so many first replies do not matter */
    bool whole;                   /* send scripts whole */
    /* results */
    cwist_jq__redis_replies replies;
    const char *names[CWIST_JQ_REDIS_NAMES];
    size_t size;                    /* of the last try's request, in bytes */
    size_t sent;                    /* how many of them left */
    uint64_t started;               /* when the last try began */
    bool unanswered;                /* a try before was sent and not answered */
    bool tried_whole;               /* the last try sent scripts whole */
    cwist_jq__redis_endpoint route; /* where the last try went */
};

/* One try. SUCCESS: all replies are there, whatever they say; else those that came before. */
int cwist_jq__redis_try(cwist_jq__redis_call *call);
/* Whether all bytes of the last try left: the server may have executed everything. */
static inline bool cwist_jq__redis_all_sent(const cwist_jq__redis_call *call)
{
    return call->size != 0 && call->sent == call->size;
}
/*
 * Acts on an error answer of the call: follows a move, forgets stale links, asks for the script
 * whole. Sets the text. AGAIN: try once more, *at_once without waiting.
 */
int cwist_jq__redis_consider(cwist_jq__redis_call *call, const char *command,
                             const redisReply *reply, bool *at_once);
/*
 * Tries until the deadline. SUCCESS: no reply that matters is an error. NO_GROUP is told as
 * LEASE_LOST: who needs the group for anything but a claim held a lease in it.
 */
int cwist_jq__redis_run(cwist_jq__redis_call *call);
/* Frees the replies. */
void cwist_jq__redis_call_clear(cwist_jq__redis_call *call);

/* How repeated tries keep apart. */
typedef struct cwist_jq__redis_pace {
    cwist_jq__backoff backoff;
    unsigned moves;
    bool refused;
    char refusal[CWIST_JQ_REDIS_TEXT_SIZE]; /* the server's last, when refused */
} cwist_jq__redis_pace;

static inline void cwist_jq__redis_pace_begin(cwist_jq__redis_pace *pace)
{
    pace->backoff.tries = 0;
    pace->moves = 0;
    pace->refused = false;
}
/*
 * Waits after a try that ended with AGAIN or IO. A try that the deadline cut short says little:
 * then it returns AGAIN with what the server answered to the one before; else `status`.
 */
int cwist_jq__redis_pause(cwist_jq__redis_pace *pace, const cwist_jq__redis_call *call, int status,
                          bool at_once);
/* The code of a call that will not be repeated, its reply lost; adds to the text. */
int cwist_jq__redis_unknown(void);
/* The code at the deadline, by that of the last try; adds to the text. */
int cwist_jq__redis_give_up(bool unanswered, int status);

/* ---- many items (piece.c) ---- */

/*
 * A command for each of many items. They go in pieces of a bounded size, one round trip a piece;
 * each item has a result of its own.
 */
typedef struct cwist_jq__redis_work cwist_jq__redis_work;
struct cwist_jq__redis_work {
    cwist_jq__queue *queue;
    uint64_t deadline;
    const char *command; /* for texts */
    bool repeatable;     /* sending one twice is harmless */
    /* Whether that holds for an item; NULL: as `repeatable` says. */
    bool (*may_repeat)(const cwist_jq__redis_work *work, size_t item);
    bool tick; /* the recovery goes before the first piece */
    const void *input;
    /* Writes the command of an item. */
    void (*build)(cwist_jq__redis_request *request, const cwist_jq__redis_work *work, size_t item,
                  bool whole);
    /* What an answer that is no error means; `unanswered`: it was sent before, perhaps. */
    int (*take)(const cwist_jq__redis_work *work, size_t item, const redisReply *reply,
                bool unanswered);
    /* Notes the result of an item. */
    void (*note)(const cwist_jq__redis_work *work, size_t item, int code);
};

/*
 * Does the items 0 to count - 1. After a piece with a failure other than LEASE_LOST, FULL and
 * NOT_FOUND the rest is NOT_SENT. Returns the code of the first item that failed, its text set.
 */
int cwist_jq__redis_run_pieces(const cwist_jq__redis_work *work, size_t count);

/* ---- entries (entry.c) ---- */

/*
 * Finds the entries in the answer of XREADGROUP, which was asked for `most` at most; *entries is
 * NULL when there is none.
 */
int cwist_jq__redis_parse_read(const redisReply *reply, size_t most, const redisReply **entries);
/*
 * Reads one of them. SUCCESS: *delivery is filled but for body and lease, its strings point into
 * the reply and its headers are in `headers`, and *payload is the reply that has the payload, or
 * NULL. PENDING: a ghost (an entry that was deleted), of which only the receipt is set.
 */
int cwist_jq__redis_parse_entry(const redisReply *entry, cwist_jq__delivery *delivery,
                                cwist_jq__field headers[CWIST_JOB_HEADERS_MAX],
                                const redisReply **payload);

#define CWIST_JQ_REDIS_KEY_FIELD "cwist-key"
#define CWIST_JQ_REDIS_HEADER "h:" /* before the name of a header in that of its field */

/*
 * Whether a field is a header that may be told; then *header is set. Of those with a name that is
 * wrong or a value that is no plain text nothing is told.
 */
bool cwist_jq__redis_read_header(const char *name, size_t name_len, const char *value,
                                 size_t value_len, cwist_jq__field *header);

/* ---- dead letters (letter.c) ---- */

/* What the scripts answer about an element of the list of dead letters. */
typedef struct cwist_jq__redis_dead {
    const redisReply *element;
    const redisReply *mark;
    const redisReply *size;    /* of its payload; a digest when it is not in our format */
    const redisReply *side;    /* from which end of the list it is nearer: 1 or -1 */
    const redisReply *payload; /* NULL: not asked for */
} cwist_jq__redis_dead;

/* Adds a letter to the page. What stands in the list may be anybody's work. */
int cwist_jq__redis_letter_add(cwist_job_dead_page_t *page, const cwist_jq__redis_dead *dead);
/* Before the digest in the id of a letter that has none of its own. */
#define CWIST_JQ_REDIS_OLDER_ID "cwist-"
#define CWIST_JQ_REDIS_DIGEST_LEN 40

/* ---- recovery (tick.c) ---- */

/* Adds the tick to a request. With `settle` it is a claimer's first. */
void cwist_jq__redis_tick_build(cwist_jq__redis_request *request, cwist_jq__queue *queue,
                                bool claimer, bool settle);
typedef struct cwist_jq__redis_ticked {
    bool more;
    uint64_t visibility_before; /* what this tick replaced, or 0 */
} cwist_jq__redis_ticked;
/* Takes in the answer of a tick; an error is only looked at for what it says of the script. */
int cwist_jq__redis_tick_read(cwist_jq__queue *queue, const redisReply *reply,
                              cwist_jq__redis_ticked *ticked);
/*
 * True when a tick that rides along with other commands is due: none was sent for gap_ms, or a job
 * is due by now. Then the caller sends one; until its answer comes nobody else of this handle does.
 */
bool cwist_jq__redis_tick_due(cwist_jq__queue *queue, uint64_t gap_ms);
/* Notes that a tick is about to be sent for a reason of the caller's own. */
void cwist_jq__redis_tick_begun(cwist_jq__queue *queue);
/* When a blocked claim should tick next, and whether that is now: then as tick_due(). */
uint64_t cwist_jq__redis_tick_time(cwist_jq__queue *queue);
bool cwist_jq__redis_tick_now(cwist_jq__queue *queue);
/* True once a minute: the claim should look for consumers left behind. */
bool cwist_jq__redis_reap_due(cwist_jq__queue *queue);
void cwist_jq__redis_reap_build(cwist_jq__redis_request *request, const cwist_jq__queue *queue);

/* ---- operations ---- */

/* Whether a tick goes ahead of an enqueue; and what comes of it. */
bool cwist_jq__redis_tick_wanted(cwist_jq__queue *queue);
void cwist_jq__redis_tick_favour(cwist_jq__queue *queue, const redisReply *reply);
/* Notes the size of a job's payload that passed through this handle. */
void cwist_jq__redis_note_size(cwist_jq__redis_queue *own, size_t len);
/* Copies the id in the answer to a command. */
int cwist_jq__redis_take_id(const char *command, const redisReply *reply,
                            char id[CWIST_JOB_ID_SIZE]);
/* Writes the fields of a job. */
size_t cwist_jq__redis_field_count(const cwist_job_item_t *item);
void cwist_jq__redis_fields_build(cwist_jq__redis_request *request, const cwist_job_item_t *item);
/* Whether storing the job takes a script: it has a delay, a dedupe key, or the queue a limit. */
bool cwist_jq__redis_needs_script(const cwist_jq__queue *queue, const cwist_job_item_t *item);
/* The script for jobs that are stored all or none, and what it answers. */
void cwist_jq__redis_store_build(cwist_jq__redis_request *request, const cwist_jq__queue *queue,
                                 const cwist_job_item_t *items, size_t count, bool whole);
int cwist_jq__redis_store_take(const cwist_jq__queue *queue, const redisReply *reply, size_t count,
                               cwist_job_stored_t *stored);
/* All or none in one step: as the seam's enqueue(). */
int cwist_jq__redis_store(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                          uint64_t deadline, cwist_job_stored_t *stored);

/* What follows are functions of the seam. */

int cwist_jq__redis_check_size(cwist_jq__queue *queue, const cwist_job_item_t *item);
int cwist_jq__redis_enqueue(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                            bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored);
int cwist_jq__redis_claim_start(cwist_jq__claim *claim);
int cwist_jq__redis_claim_wait(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs,
                               size_t *count);
int cwist_jq__redis_ack_and_poll(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                                 int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got);
void cwist_jq__redis_claim_end(cwist_jq__claim *claim);
int cwist_jq__redis_ack(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                        uint64_t deadline, int *codes);
int cwist_jq__redis_retry(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                          const uint64_t *delays_ms, uint64_t deadline, int *codes);
int cwist_jq__redis_release(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                            uint64_t delay_ms, uint64_t deadline, int *codes);
int cwist_jq__redis_bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                         cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes);
int cwist_jq__redis_extend(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                           uint64_t deadline, int *codes);
int cwist_jq__redis_dead_list(cwist_jq__queue *queue, const char *after, size_t most,
                              bool oldest_first, uint64_t deadline, cwist_job_dead_page_t *page,
                              bool *more);
int cwist_jq__redis_dead_find(cwist_jq__queue *queue, const char *id, bool payload,
                              uint64_t deadline, cwist_job_dead_page_t *page);
int cwist_jq__redis_dead_requeue(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                 size_t count, uint64_t deadline, int *codes);
int cwist_jq__redis_dead_remove(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                size_t count, uint64_t deadline, int *codes);
int cwist_jq__redis_dead_count(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count);
int cwist_jq__redis_server_time(cwist_jq__queue *queue, uint64_t deadline, uint64_t *now_ms);
int cwist_jq__redis_stats(cwist_jq__queue *queue, uint64_t deadline, cwist_job_stats_t *stats);
int cwist_jq__redis_purge(cwist_jq__queue *queue, uint64_t deadline, uint64_t *mark,
                          uint64_t *count, bool *more);
int cwist_jq__redis_set_pause(cwist_jq__queue *queue, bool paused, uint64_t deadline);

/* ---- acks (ack.c) ---- */

/* Jobs of one queue that are acked in one exchange. */
typedef struct cwist_jq__redis_acks {
    cwist_jq__queue *queue;
    cwist_jq__job *const *jobs;
    size_t count;               /* 1 to CWIST_JQ_PIECE */
    size_t keyed;               /* so many have a dedupe key: a script acks each of them */
    size_t alone;               /* so many are answered one by one, those included */
    bool apart[CWIST_JQ_PIECE]; /* which ones */
} cwist_jq__redis_acks;

void cwist_jq__redis_acks_begin(cwist_jq__redis_acks *acks, cwist_jq__queue *queue,
                                cwist_jq__job *const *jobs, size_t count);
/* Decides which go one by one: those whose lease is nearly over by now, or all. */
void cwist_jq__redis_acks_build(cwist_jq__redis_request *request, cwist_jq__redis_acks *acks,
                                bool all_apart);
/* Notes whether the server knows the script by now. */
void cwist_jq__redis_acks_note_script(const cwist_jq__redis_acks *acks, bool known);
/* Reads them, none of which is an error. Fills in codes; returns the first failure. */
int cwist_jq__redis_acks_take(const cwist_jq__redis_acks *acks, redisReply *const *replies,
                              bool unanswered, int *codes);
/* As the seam's ack(); `unanswered`: they were sent before, and no answer came. */
int cwist_jq__redis_ack_again(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                              bool unanswered, uint64_t deadline, int *codes);

/* The server says that the delivery is not ours; `unanswered` as above. */
int cwist_jq__redis_not_ours(const cwist_jq__queue *queue, cwist_jq__job *job, bool unanswered);

#endif
