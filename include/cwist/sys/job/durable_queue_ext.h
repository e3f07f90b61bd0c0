/*
 * What cwist_jq adds to the CWIST job queue: connections by URL, error texts, further codes,
 * release, extend, nack with a reason, interruptible claims, batches.
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
    CWIST_ERROR_INTERRUPTED = -29,     /* cwist_job_queue_interrupt() woke the claim */
    CWIST_ERROR_NOT_SENT = -30         /* an earlier item failed first: not tried */
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

/*
 * Reads how long the lease of a claimed job still holds, by the local clock; no network call. After
 * that another worker may have the job.
 * Returns: milliseconds, rounded down; 0 when the lease is over or the handle is not valid.
 */
CWIST_API uint64_t cwist_job_lease_remaining_ms(const cwist_job_t *job);

/* ---- batches ----
 *
 * Each call takes 1 to CWIST_JOB_BATCH_MAX items, sends them in pieces of a bounded size, one round
 * trip a piece, and tells a result for each item. The result of the call is CWIST_SUCCESS when
 * every item succeeded, else the code of the first item that failed, and cwist_job_last_error() is
 * about that one. The operation timeout holds for the whole batch. A batch is no transaction,
 * except where a function says so.
 */

enum { CWIST_JOB_BATCH_MAX = 1000 };

/* A job to store. Zero the struct before filling it in; what it points to is borrowed. */
typedef struct cwist_job_item {
    const void *payload; /* may be NULL when len is 0 */
    size_t len;
    const char *type; /* NULL or "": none */
} cwist_job_item_t;

/* What became of an item. */
typedef struct cwist_job_stored {
    int code;                   /* CWIST_SUCCESS, or why it was not stored */
    char id[CWIST_JOB_ID_SIZE]; /* "" unless it was stored */
} cwist_job_stored_t;

/*
 * Persists jobs in the given order. stored has room for count results, or is NULL. All items are
 * checked before the first is sent: a bad one is named, and nothing is stored.
 * Errors: IO (not stored), OUTCOME_UNKNOWN (the reply was lost), TOO_LARGE, REFUSED, DENIED; for
 * an item also NOT_SENT.
 */
CWIST_API cwist_error_t cwist_job_queue_enqueue_many(cwist_job_queue_t *queue,
                                                     const cwist_job_item_t *items, size_t count,
                                                     cwist_job_stored_t *stored);

/*
 * Persists jobs, all or none, in one step of the server. Otherwise as
 * cwist_job_queue_enqueue_many(). On NATS it needs server 2.12.
 * Errors: UNSUPPORTED (the server cannot), TOO_LARGE (also for more than the server takes in one
 * step), IO (nothing was stored), OUTCOME_UNKNOWN (the reply was lost), REFUSED, DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_enqueue_all(cwist_job_queue_t *queue,
                                                    const cwist_job_item_t *items, size_t count,
                                                    cwist_job_stored_t *stored);

/*
 * Claims up to `most` jobs (1 to CWIST_JOB_BATCH_MAX) at once. It waits up to timeout_ms for the
 * first, as cwist_job_queue_claim() does, and returns with what is ready then. jobs has room for
 * `most` handles; each of the *count that are filled in is yours, as from cwist_job_queue_claim().
 * *count is 0 unless it succeeds. All leases began before the call returned: claim no more than can
 * be handled within the visibility timeout.
 * Errors: as for cwist_job_queue_claim().
 */
CWIST_API cwist_error_t cwist_job_queue_claim_many(cwist_job_queue_t *queue, size_t most,
                                                   uint64_t timeout_ms, cwist_job_t **jobs,
                                                   size_t *count);

/*
 * Removes jobs for good, as cwist_job_queue_ack() does. Consumes every handle, whatever it returns,
 * except when count is out of its range. codes has room for count results, or is NULL.
 * Errors: LEASE_LOST, IO (the job will come back), OUTCOME_UNKNOWN; for an item also CLOSED (a
 * handle that was used before, or stands twice in jobs), NOT_SENT.
 */
CWIST_API cwist_error_t cwist_job_queue_ack_many(cwist_job_queue_t *queue, cwist_job_t *const *jobs,
                                                 size_t count, int *codes);

/*
 * Hands jobs back for a retry, each as cwist_job_queue_nack() does. Otherwise as
 * cwist_job_queue_ack_many().
 * Errors: as for cwist_job_queue_ack_many().
 */
CWIST_API cwist_error_t cwist_job_queue_nack_many(cwist_job_queue_t *queue,
                                                  cwist_job_t *const *jobs, size_t count,
                                                  int *codes);

/*
 * Hands jobs back at once, each as cwist_job_queue_release() does: no attempt is spent. Otherwise
 * as cwist_job_queue_ack_many().
 * Errors: as for cwist_job_queue_ack_many().
 */
CWIST_API cwist_error_t cwist_job_queue_release_many(cwist_job_queue_t *queue,
                                                     cwist_job_t *const *jobs, size_t count,
                                                     int *codes);

/*
 * Acks jobs and claims the next ones in the same round trip when some are ready: for a worker that
 * has nothing else to do. Acks as cwist_job_queue_ack_many() does (count may be 0), then claims as
 * cwist_job_queue_claim_many() does; `next` has room for `most` handles. The result of the call is
 * that of the claim; what became of the acks stands in codes alone, which has room for count
 * results and may be NULL only when count is 0.
 * codes is filled in and every handle consumed whatever it returns, except for an argument out of
 * its range: then nothing was done.
 * Errors: as for cwist_job_queue_claim().
 */
CWIST_API cwist_error_t cwist_job_queue_ack_and_claim(cwist_job_queue_t *queue,
                                                      cwist_job_t *const *jobs, size_t count,
                                                      int *codes, size_t most, uint64_t timeout_ms,
                                                      cwist_job_t **next, size_t *next_count);

/* ---- claims in slices ---- */

/*
 * A claim that waits in pieces, for callers that must look up in between (a language runtime with
 * signals of its own). start makes it, wait advances it, end ends it; between waits the server goes
 * on waiting for it.
 */
typedef struct cwist_job_claim cwist_job_claim_t;

/*
 * Starts a claim of up to `most` jobs (1 to CWIST_JOB_BATCH_MAX) that waits in slices; timeout_ms
 * is as for cwist_job_queue_claim(). On success *claim is yours to end, else NULL.
 * Errors: CLOSED.
 */
CWIST_API cwist_error_t cwist_job_claim_start(cwist_job_claim_t **claim, cwist_job_queue_t *queue,
                                              size_t most, uint64_t timeout_ms);

/*
 * Waits up to slice_ms for a started claim. On success the *count handles in jobs, which has room
 * for `most`, are yours; none when the slice ended and the claim goes on. Jobs, and every
 * error, end its work; only cwist_job_claim_end() is left to call then.
 * Errors: as for cwist_job_queue_claim().
 * Threads: one at a time for each claim.
 */
CWIST_API cwist_error_t cwist_job_claim_wait(cwist_job_claim_t *claim, uint64_t slice_ms,
                                             cwist_job_t **jobs, size_t *count);

/*
 * Ends the claim and frees it; jobs that arrive meanwhile are released. NULL is allowed.
 * Threads: one at a time for each claim.
 */
CWIST_API void cwist_job_claim_end(cwist_job_claim_t *claim);
/* cdef: end */

#ifdef __cplusplus
}
#endif

#endif
