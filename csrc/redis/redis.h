/*
 * What the files of the Redis backend share.
 *
 *   request.c    commands as bytes             handshake.c  a new link, ready for use
 *   link.c       one connection                pool.c       links at rest
 *   reply.c      what an error answer means    route.c      the right node of a cluster
 *   call.c       one exchange, and retrying    entry.c      a stream entry becomes a delivery
 *   tick.c       recovery and its timetable    claim.c, claim_*.c   claims
 *   enqueue.c, settle.c, backend.c             the operations
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

#define CWIST_JQ_REDIS_PIPELINE 8

/* Commands written one behind the other. Start with a zeroed struct. */
typedef struct cwist_jq__redis_request {
    char *data;
    size_t len;
    size_t cap;
    const void *borrowed; /* a long argument that is sent from where it stands */
    size_t borrowed_len;
    size_t borrowed_at; /* its place in data */
    const char *names[CWIST_JQ_REDIS_PIPELINE];
    unsigned commands;
    bool failed;
} cwist_jq__redis_request;

void cwist_jq__request_clear(cwist_jq__redis_request *request);
/* Begins a command of so many arguments, the name not counted; name is a static text. */
void cwist_jq__request_command(cwist_jq__redis_request *request, const char *name, size_t args);
void cwist_jq__request_bytes(cwist_jq__redis_request *request, const void *data, size_t len);
void cwist_jq__request_text(cwist_jq__redis_request *request, const char *text);
void cwist_jq__request_number(cwist_jq__redis_request *request, uint64_t number);
/* An argument that is only borrowed until the request was sent when it is long. One per request. */
void cwist_jq__request_borrow(cwist_jq__redis_request *request, const void *data, size_t len);
/* Begins a call of a script; its keys and args follow. By digest, or whole when `whole`. */
void cwist_jq__request_script(cwist_jq__redis_request *request,
                              const cwist_jq__redis_script *script, bool whole, size_t args);

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
    unsigned generation;  /* of the pool when it was made */
    unsigned outstanding; /* replies that have not come */
    bool partial;         /* part of the next reply has come */
    uint64_t quiet;       /* the last moment when nothing of the next reply had come */
    uint64_t heard;       /* when bytes came last */
    char chunk[16384];
} cwist_jq__redis_link;

/* A connected link without a handshake. */
int cwist_jq__redis_link_connect(cwist_jq__redis_link **link, const cwist_jq__conn *conn,
                                 const cwist_jq__redis_endpoint *endpoint, uint64_t deadline);
void cwist_jq__redis_link_close(cwist_jq__redis_link *link); /* NULL is allowed */
/* True when the server has neither closed the idle link nor sent something unasked. */
bool cwist_jq__redis_link_is_idle(cwist_jq__redis_link *link);
/*
 * Sends. *complete tells whether all bytes left; when they did not, no command was executed but
 * perhaps some before the last.
 */
int cwist_jq__redis_link_send(cwist_jq__redis_link *link, const cwist_jq__redis_request *request,
                              uint64_t deadline, bool *complete);
/*
 * Reads the next reply, which is the caller's to free. PENDING at the deadline: the link is as good
 * as before. With a claim it looks up every slice and may return what cwist_jq__claim_check() says.
 */
int cwist_jq__redis_link_read(cwist_jq__redis_link *link, uint64_t deadline,
                              const cwist_jq__claim *claim, redisReply **reply);

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
void cwist_jq__redis_reply_free(redisReply *reply); /* NULL is allowed */
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
    uint64_t last_tick;   /* 0: never */
    uint64_t hint;        /* when the next job is due or lapses; NEVER: none known */
    uint64_t tick_credit; /* see tick.c */
    uint64_t next_reap;   /* when to look for consumers left behind */
    char cursor[CWIST_JQ_REDIS_CURSOR_SIZE];
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
    redisReply *replies[CWIST_JQ_REDIS_PIPELINE];
    unsigned count;
    const char *names[CWIST_JQ_REDIS_PIPELINE];
    bool sent;                      /* the last try left completely */
    uint64_t started;               /* when the last try began */
    bool unanswered;                /* a try before was sent and not answered */
    cwist_jq__redis_endpoint route; /* where the last try went */
};

/* One try. SUCCESS: all replies are there, whatever they say. */
int cwist_jq__redis_try(cwist_jq__redis_call *call);
/*
 * Tries until the deadline. SUCCESS: no reply that matters is an error. NO_GROUP is told as
 * LEASE_LOST: who needs the group for anything but a claim held a lease in it.
 */
int cwist_jq__redis_run(cwist_jq__redis_call *call);
/* Frees the replies. */
void cwist_jq__redis_call_clear(cwist_jq__redis_call *call);

/* ---- entries (entry.c) ---- */

/*
 * Reads the answer of XREADGROUP. SUCCESS: *delivery is filled but for body and lease, its strings
 * point into the reply. PENDING: nothing yet. A ghost (an entry that was deleted) is PENDING with
 * delivery->receipt set.
 */
int cwist_jq__redis_parse_read(const redisReply *reply, cwist_jq__delivery *delivery);

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

int cwist_jq__redis_enqueue(cwist_jq__queue *queue, const void *payload, size_t len,
                            const char *type, uint64_t deadline, char *id);
int cwist_jq__redis_claim_start(cwist_jq__claim *claim);
int cwist_jq__redis_claim_wait(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **job);
void cwist_jq__redis_claim_end(cwist_jq__claim *claim);
int cwist_jq__redis_ack(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline);
int cwist_jq__redis_retry(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t delay_ms,
                          uint64_t deadline);
int cwist_jq__redis_release(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline);
int cwist_jq__redis_bury(cwist_jq__queue *queue, cwist_jq__job *job, cwist_jq__cause cause,
                         const char *text, uint64_t deadline);
int cwist_jq__redis_extend(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline);

#endif
