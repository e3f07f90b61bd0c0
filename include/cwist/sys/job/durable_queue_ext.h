/*
 * What cwist_jq adds to the CWIST job queue: connections by URL, error texts, further codes,
 * release, extend, nack with a reason, interruptible claims.
 *
 * Thread rule for all of this header: any thread.
 */
#ifndef CWIST_JQ_DURABLE_QUEUE_EXT_H
#define CWIST_JQ_DURABLE_QUEUE_EXT_H

#include <cwist/sys/job/durable_queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cdef: begin */

/* ---- errors ---- */

enum cwist_job_error_code {
    CWIST_ERROR_LEASE_LOST = -21,      /* the delivery was given away; the call changed nothing */
    CWIST_ERROR_CLOSED = -22,          /* the handle is closed or belongs to another process */
    CWIST_ERROR_UNSUPPORTED = -23,     /* this build or this server cannot do it */
    CWIST_ERROR_TOO_LARGE = -24,       /* payload over the engine's limit; nothing was sent */
    CWIST_ERROR_DENIED = -25,          /* credentials or rights are missing; a bad certificate */
    CWIST_ERROR_OUTCOME_UNKNOWN = -26, /* sent, but the reply was lost: done or not done */
    CWIST_ERROR_REFUSED = -27,         /* the server refused (memory, disk, read-only, loading) */
    CWIST_ERROR_CONFLICT = -28,        /* what exists on the server is configured differently */
    CWIST_ERROR_INTERRUPTED = -29      /* cwist_job_queue_interrupt() woke the claim */
};

/* The code of an error of the job queue; CWIST_FAILURE for NULL and for other kinds. */
CWIST_API int cwist_job_error_code(const cwist_error_t *error);

/* The name of a code ("CWIST_ERROR_IO"); static. */
CWIST_API const char *cwist_job_error_name(int code);

/*
 * What failed last in this thread: one line naming the operation, queue and server, with the
 * server's own words and never a password. "" when nothing failed yet. Borrowed until the next call
 * of the library in this thread. The code decides, the text informs.
 */
CWIST_API const char *cwist_job_last_error(void);

/* ---- library ---- */

/* The version as "major.minor.patch"; static. */
CWIST_API const char *cwist_job_version(void);

/* The count of live handles (connections, queues, jobs, claims) of this process. */
CWIST_API uint64_t cwist_job_live_handles(void);

/* ---- connections ---- */

typedef struct cwist_job_conn cwist_job_conn_t;

enum cwist_job_log_level { CWIST_JOB_LOG_WARNING = 1, CWIST_JOB_LOG_INFO = 2 };

/*
 * Receives one line of log. Called from the thread that is inside the library, which may hold no
 * lock of the library; text is borrowed for the call. It must not call the library.
 */
typedef void (*cwist_job_log_fn)(void *context, int level, const char *text);

typedef struct cwist_job_conn_opts {
    size_t struct_size;            /* set by cwist_job_conn_opts_init() */
    uint64_t connect_timeout_ms;   /* one attempt to connect: 1 to 86400000; default 2000 */
    uint64_t operation_timeout_ms; /* one call other than claim: 1 to 86400000; default 5000 */
    cwist_job_log_fn log;          /* default: warnings go to stderr */
    void *log_context;             /* given back to log; must outlive the connection's queues */
} cwist_job_conn_opts_t;

/* Fills opts with the defaults. */
CWIST_API void cwist_job_conn_opts_init(cwist_job_conn_opts_t *opts);

/*
 * Connects to url: redis://[user:pass@]host[:port][/db], rediss://, unix:///path[?db=N],
 * nats://[user:pass@]host:port[,host:port], tls://. A password may be percent-encoded. rediss://
 * and tls:// are encrypted: certificate and host name are checked, by the system's authorities, and
 * may end in ?tls_ca=FILE&tls_cert=FILE&tls_key=FILE&tls_verify=no: the authorities to trust
 * instead, our certificate and its key (PEM, no password), and no check at all. The files are read
 * here. opts may be NULL. On success *conn is yours to close, else NULL. Errors: INVALID_PARAM
 * (also for a file that cannot be used), IO, PROTOCOL (this is no server of that kind), DENIED
 * (credentials, or a certificate that one side does not accept), UNSUPPORTED (the engine or TLS is
 * not in this build, the server is too old, JetStream is off).
 */
CWIST_API cwist_error_t cwist_job_conn_open(cwist_job_conn_t **conn, const char *url,
                                            const cwist_job_conn_opts_t *opts);

/* Closes the handle; queues made from it go on. NULL and a closed handle are allowed. */
CWIST_API void cwist_job_conn_close(cwist_job_conn_t *conn);

/* ---- queues ---- */

/* The size of an id with its final NUL, at most. */
enum { CWIST_JOB_ID_SIZE = 64 };

/* cwist_job_queue_create_* for a connection by URL, with the reason as the result. */
CWIST_API cwist_error_t cwist_job_queue_open(cwist_job_queue_t **queue, cwist_job_conn_t *conn,
                                             const cwist_job_queue_opts_t *opts);

/*
 * cwist_job_queue_enqueue() that also writes the id of the job, with a final NUL, to id: a buffer
 * of at least CWIST_JOB_ID_SIZE bytes, "" on failure.
 */
CWIST_API cwist_error_t cwist_job_queue_enqueue_id(cwist_job_queue_t *queue, const void *payload,
                                                   size_t len, const char *type, char *id);

/*
 * cwist_job_queue_nack() with the reason of the failure, kept with the dead letter: up to 1024
 * bytes of UTF-8 (NULL: none; a longer one is INVALID_PARAM and leaves the handle alive).
 */
CWIST_API cwist_error_t cwist_job_queue_nack_reason(cwist_job_queue_t *queue, cwist_job_t *job,
                                                    const char *reason);

/*
 * Hands the job back at once, as if it had not been claimed: no attempt is spent. Consumes the
 * handle, whatever it returns. Errors: as for ack.
 */
CWIST_API cwist_error_t cwist_job_queue_release(cwist_job_queue_t *queue, cwist_job_t *job);

/*
 * Restarts the visibility clock of a claimed job. The handle stays valid, on failure too.
 * Errors: LEASE_LOST, IO, OUTCOME_UNKNOWN.
 */
CWIST_API cwist_error_t cwist_job_queue_extend(cwist_job_queue_t *queue, cwist_job_t *job);

/*
 * Wakes the claims of this handle that are blocked now, in any thread: they return INTERRUPTED
 * within 0.3 s. A job that arrives meanwhile is released.
 */
CWIST_API cwist_error_t cwist_job_queue_interrupt(cwist_job_queue_t *queue);

/* ---- claims in slices ---- */

/*
 * A claim that waits in pieces, for callers that must look up in between (a language runtime with
 * signals of its own). start makes it, wait advances it, end ends it; between waits the server goes
 * on waiting for it. One thread at a time per claim.
 */
typedef struct cwist_job_claim cwist_job_claim_t;

/* On success *claim is yours to end, else NULL. timeout_ms as in cwist_job_queue_claim(). */
CWIST_API cwist_error_t cwist_job_claim_start(cwist_job_claim_t **claim, cwist_job_queue_t *queue,
                                              uint64_t timeout_ms);

/*
 * Waits up to slice_ms. SUCCESS: *job is yours, or NULL when the slice ended and the claim goes on.
 * Every error ends the claim's work; only cwist_job_claim_end() is left to call.
 */
CWIST_API cwist_error_t cwist_job_claim_wait(cwist_job_claim_t *claim, uint64_t slice_ms,
                                             cwist_job_t **job);

/* Ends the claim and frees it; a job that arrives meanwhile is released. NULL is allowed. */
CWIST_API void cwist_job_claim_end(cwist_job_claim_t *claim);
/* cdef: end */

#ifdef __cplusplus
}
#endif

#endif
