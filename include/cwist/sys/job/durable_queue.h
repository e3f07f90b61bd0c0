/*
 * Durable job queue, as in CWIST: jobs persist on a server, a worker claims one, acks or nacks it,
 * and a job whose worker is silent for the visibility timeout goes to another. Delivery is
 * at-least-once: handlers must be idempotent.
 *
 * Threads: any thread. A blocked claim delays no other call.
 *
 * Error codes: sys/err/cwist_err.h and sys/job/durable_queue_ext.h. A comment names the codes that
 * a program may want to tell apart; INVALID_PARAM, CLOSED and NOMEM can come from every function.
 */
#ifndef CWIST_JQ_DURABLE_QUEUE_H
#define CWIST_JQ_DURABLE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cwist/export.h>
#include <cwist/net/nats/cwist_nats.h>
#include <cwist/net/redis/cwist_redis.h>
#include <cwist/sys/err/cwist_err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cdef: begin */
typedef struct cwist_job_queue cwist_job_queue_t;
typedef struct cwist_job cwist_job_t;

/* Strings are copied. A zero (or NULL) field means its default. */
typedef struct cwist_job_queue_opts {
    const char *name;     /* required: 1 to 128 of A-Z a-z 0-9 _ - . :, not ending in _DEAD */
    const char *consumer; /* label of this worker, 1 to 128 printable ASCII; default: unique */
    uint64_t visibility_timeout_ms; /* 10 ms to 7 days; default 30000 */
    uint32_t max_retries;           /* deliveries, the first included, 1 to 1000000; default 5 */
    uint64_t retry_delay_ms;        /* wait of a nacked job, 0 to 365 days; default 0 */
} cwist_job_queue_opts_t;

/*
 * Opens a queue; what it needs on the server is made on first use. The connection is borrowed for
 * this call only.
 * Returns: a handle that is yours to destroy, or NULL; then cwist_job_last_error() says why.
 */
CWIST_API cwist_job_queue_t *cwist_job_queue_create_redis(cwist_redis_t *redis,
                                                          const cwist_job_queue_opts_t *opts);
CWIST_API cwist_job_queue_t *cwist_job_queue_create_nats(cwist_nats_t *nats,
                                                         const cwist_job_queue_opts_t *opts);

/*
 * Frees the handle of a queue and wakes its blocked claims with CLOSED. Claimed jobs come back to
 * other workers when their leases end. NULL and a destroyed handle are allowed.
 */
CWIST_API void cwist_job_queue_destroy(cwist_job_queue_t *queue);

/*
 * Persists a job: payload is len bytes of anything (may be NULL when len is 0), type a tag of up to
 * 255 bytes of UTF-8 without control characters, or NULL. Both are borrowed for the call.
 * Errors: IO (nothing was stored), OUTCOME_UNKNOWN (the reply was lost), TOO_LARGE, REFUSED,
 * DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_enqueue(cwist_job_queue_t *queue, const void *payload,
                                                size_t len, const char *type);

/*
 * Claims one job, waiting up to timeout_ms (0 polls once, UINT64_MAX waits for ever). On success
 * *job is yours: give it to ack, nack, release or destroy; otherwise it is NULL.
 * Errors: TIMEOUT, IO (no server until the deadline), CLOSED, INTERRUPTED.
 */
CWIST_API cwist_error_t cwist_job_queue_claim(cwist_job_queue_t *queue, uint64_t timeout_ms,
                                              cwist_job_t **job);

/*
 * Removes the job for good. Consumes the handle, whatever it returns.
 * Errors: LEASE_LOST, IO (the job will come back), OUTCOME_UNKNOWN.
 */
CWIST_API cwist_error_t cwist_job_queue_ack(cwist_job_queue_t *queue, cwist_job_t *job);

/*
 * Hands the job back for a retry after retry_delay_ms, or moves it to the dead letters when this
 * was delivery number max_retries. Consumes the handle, whatever it returns.
 * Errors: as for cwist_job_queue_ack().
 */
CWIST_API cwist_error_t cwist_job_queue_nack(cwist_job_queue_t *queue, cwist_job_t *job);

/*
 * Drops the handle of a job: no ack, no nack; the job comes back when its lease ends. NULL is
 * allowed.
 */
CWIST_API void cwist_job_destroy(cwist_job_t *job);

/*
 * Reads the payload of a job. Its length goes to *len (len may be NULL).
 * Returns: the payload, borrowed until the job is consumed; NULL for a handle that is not valid.
 */
CWIST_API const void *cwist_job_payload(const cwist_job_t *job, size_t *len);

/*
 * Reads the type of a job.
 * Returns: the type, borrowed until the job is consumed; NULL when the job has none.
 */
CWIST_API const char *cwist_job_type(const cwist_job_t *job);

/*
 * Reads the id of a job: the first entry id (Redis) or stream sequence (NATS). It is the same in
 * all deliveries.
 * Returns: the id, borrowed until the job is consumed; NULL for a handle that is not valid.
 */
CWIST_API const char *cwist_job_id(const cwist_job_t *job);

/*
 * Counts the deliveries of a job.
 * Returns: the deliveries so far, this one included; 0 for a handle that is not valid.
 */
CWIST_API uint32_t cwist_job_attempts(const cwist_job_t *job);

/*
 * Counts the dead letters of the queue; 0 for a queue that was never used.
 * Errors: IO, DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_dead_count(cwist_job_queue_t *queue, uint64_t *count);
/* cdef: end */

#ifdef __cplusplus
}
#endif

#endif
