/*
 * What cwist_jq adds to the CWIST job queue: connections by URL, error texts, further codes,
 * release, extend, nack with a reason, interruptible claims.
 *
 * Threads: any thread.
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

/*
 * Reads the code of an error of the job queue.
 * Returns: the code; CWIST_FAILURE for NULL and for errors of other kinds.
 */
CWIST_API int cwist_job_error_code(const cwist_error_t *error);

/*
 * Names a code.
 * Returns: the name, as in "CWIST_ERROR_IO"; static.
 */
CWIST_API const char *cwist_job_error_name(int code);

/*
 * Tells what failed last in this thread: one line naming the operation, queue and server, with the
 * server's own words and never a password. The code decides, the text informs.
 * Returns: the text, borrowed until the next call of the library in this thread; "" when nothing
 * failed yet.
 */
CWIST_API const char *cwist_job_last_error(void);

/* ---- library ---- */

/*
 * Tells the version of the library that runs.
 * Returns: the version, as in "1.2.3"; static.
 */
CWIST_API const char *cwist_job_version(void);

/*
 * Counts the live handles of this process: a check for leaks.
 * Returns: the number of connections, queues, jobs and claims that were not given back.
 */
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

/* Fills the options of a connection with the defaults. */
CWIST_API void cwist_job_conn_opts_init(cwist_job_conn_opts_t *opts);

/*
 * Connects to a server by URL: redis://[user:pass@]host[:port][/db], rediss://,
 * unix:///path[?db=N], nats://[user:pass@]host:port[,host:port], tls://. A password may be
 * percent-encoded. rediss:// and tls:// are encrypted: certificate and host name are checked, by
 * the system's authorities, and may end in ?tls_ca=FILE&tls_cert=FILE&tls_key=FILE&tls_verify=no:
 * the authorities to trust instead, our certificate and its key (PEM, no password), and no check at
 * all. The files are read here. opts may be NULL. On success *conn is yours to close, else NULL.
 * Errors: INVALID_PARAM (also for a file that cannot be used), IO, PROTOCOL (this is no server of
 * that kind), DENIED (credentials, or a certificate that one side does not accept), UNSUPPORTED
 * (the engine or TLS is not in this build, the server is too old, JetStream is off).
 */
CWIST_API cwist_error_t cwist_job_conn_open(cwist_job_conn_t **conn, const char *url,
                                            const cwist_job_conn_opts_t *opts);

/*
 * Closes the handle of a connection; queues made from it go on. NULL and a closed handle are
 * allowed.
 */
CWIST_API void cwist_job_conn_close(cwist_job_conn_t *conn);

/* ---- queues ---- */

/* The size of an id with its final NUL, at most. */
enum { CWIST_JOB_ID_SIZE = 64 };

/*
 * Opens a queue on a connection by URL; what it needs on the server is made on first use. The
 * connection is borrowed for this call only. On success *queue is yours to destroy, else NULL.
 * Errors: INVALID_PARAM (an option is out of its range), IO (no server), DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_open(cwist_job_queue_t **queue, cwist_job_conn_t *conn,
                                             const cwist_job_queue_opts_t *opts);

/*
 * Persists a job and tells its id: does what cwist_job_queue_enqueue() does, and writes the id with
 * a final NUL to id, a buffer of at least CWIST_JOB_ID_SIZE bytes ("" on failure).
 * Errors: as for cwist_job_queue_enqueue().
 */
CWIST_API cwist_error_t cwist_job_queue_enqueue_id(cwist_job_queue_t *queue, const void *payload,
                                                   size_t len, const char *type, char *id);

/*
 * Hands the job back and says why: does what cwist_job_queue_nack() does, and keeps the reason with
 * the dead letter. It has up to 1024 bytes of UTF-8 (NULL: none; a longer one is INVALID_PARAM and
 * leaves the handle alive).
 * Errors: as for cwist_job_queue_ack().
 */
CWIST_API cwist_error_t cwist_job_queue_nack_reason(cwist_job_queue_t *queue, cwist_job_t *job,
                                                    const char *reason);

/*
 * Hands the job back at once, as if it had not been claimed: no attempt is spent. Consumes the
 * handle, whatever it returns.
 * Errors: as for cwist_job_queue_ack().
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
 * Errors: CLOSED.
 */
CWIST_API cwist_error_t cwist_job_queue_interrupt(cwist_job_queue_t *queue);

/* ---- claims in slices ---- */

/*
 * A claim that waits in pieces, for callers that must look up in between (a language runtime with
 * signals of its own). start makes it, wait advances it, end ends it; between waits the server goes
 * on waiting for it.
 */
typedef struct cwist_job_claim cwist_job_claim_t;

/*
 * Starts a claim that waits in slices; timeout_ms is as for cwist_job_queue_claim(). On success
 * *claim is yours to end, else NULL.
 * Errors: CLOSED.
 */
CWIST_API cwist_error_t cwist_job_claim_start(cwist_job_claim_t **claim, cwist_job_queue_t *queue,
                                              uint64_t timeout_ms);

/*
 * Waits up to slice_ms for a started claim. On success *job is yours, or NULL when the slice ended
 * and the claim goes on. Every error ends the claim's work; only cwist_job_claim_end() is left to
 * call.
 * Errors: as for cwist_job_queue_claim().
 * Threads: one at a time for each claim.
 */
CWIST_API cwist_error_t cwist_job_claim_wait(cwist_job_claim_t *claim, uint64_t slice_ms,
                                             cwist_job_t **job);

/*
 * Ends the claim and frees it; a job that arrives meanwhile is released. NULL is allowed.
 * Threads: one at a time for each claim.
 */
CWIST_API void cwist_job_claim_end(cwist_job_claim_t *claim);
/* cdef: end */

#ifdef __cplusplus
}
#endif

#endif
