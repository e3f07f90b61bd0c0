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
 */
#ifndef CWIST_JQ_BACKEND_H
#define CWIST_JQ_BACKEND_H

#include "core/internal.h"

/* Not a public code: the slice ended, the claim goes on. */
#define CWIST_JQ_PENDING 1

/* Why a job is dead; the number is part of the wire format (docs/wire-format.md). */
typedef enum cwist_jq__cause {
    CWIST_JQ_CAUSE_NACKED = 1,
    CWIST_JQ_CAUSE_LEASE_EXPIRED = 2,
    CWIST_JQ_CAUSE_MALFORMED = 3,
    CWIST_JQ_CAUSE_REJECTED = 4
} cwist_jq__cause;

/* The word of a cause on the wire: "nacked", "lease-expired", "malformed", "rejected". */
const char *cwist_jq__cause_name(cwist_jq__cause cause);

struct cwist_jq__ops {
    const char *engine; /* "redis", "nats" */

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
     * Stores a job. type is NULL when there is none. Writes the id with its NUL to
     * id[CWIST_JOB_ID_SIZE]. TOO_LARGE names the limit and sends nothing.
     */
    int (*enqueue)(cwist_jq__queue *queue, const void *payload, size_t len, const char *type,
                   uint64_t deadline, char *id);

    /* Makes claim->impl. */
    int (*claim_start)(cwist_jq__claim *claim);
    /*
     * Waits until `until` for one delivery. SUCCESS: *job is the caller's. PENDING: `until` came
     * first. TIMEOUT: claim->deadline came and the server had no job. IO: it came and the server
     * could not be reached. With a deadline already passed it polls the server once.
     * Lapsed and due jobs are brought back on the way, at most 250 ms late.
     */
    int (*claim_wait)(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **job);
    /* Gives up what is still asked for; a delivery that arrives is given to cwist_jq__hand_back().
     */
    void (*claim_end)(cwist_jq__claim *claim);

    /*
     * The five ends of a delivery. LEASE_LOST when the job was given away, and then nothing
     * changed. `job` stays the caller's.
     */
    int (*ack)(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline);
    int (*retry)(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t delay_ms, uint64_t deadline);
    int (*release)(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline);
    /* Moves the job to the dead letters with job->attempts; text may be NULL. */
    int (*bury)(cwist_jq__queue *queue, cwist_jq__job *job, cwist_jq__cause cause, const char *text,
                uint64_t deadline);
    int (*extend)(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline);

    int (*dead_count)(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count);
};

/* NULL when the engine was left out of the build. */
extern const cwist_jq__ops *const cwist_jq__backend_redis;
extern const cwist_jq__ops *const cwist_jq__backend_nats;

#endif
