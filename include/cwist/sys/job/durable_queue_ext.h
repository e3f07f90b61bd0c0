/*
 * What cwist_jq adds to the CWIST job queue: connections by URL, error texts, further codes,
 * delayed and unique jobs, headers, retry policies, release, extend, renewal of leases,
 * interruptible claims, batches, dead letters, statistics, purge and pause.
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
    CWIST_ERROR_NOT_SENT = -30,        /* an earlier item failed first: not tried */
    CWIST_ERROR_NOT_FOUND = -31,       /* there is no such dead letter (any more) */
    CWIST_ERROR_FULL = -32             /* the queue holds max_length jobs; nothing was stored */
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
 * Receives one line of log. Called from the thread that is inside the library, or from one that
 * renews leases; neither holds a lock of the library. text is borrowed for the call. It must not
 * call the library.
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
 * all. The files are read here. memory://[name] is a store in the memory of this process, for
 * tests: shared by all connections to that name, and gone with the last of them. opts may be NULL.
 * On success *conn is yours to close, else NULL.
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

/* How long a nacked job waits. */
enum cwist_job_backoff {
    CWIST_JOB_BACKOFF_FIXED = 0,      /* always retry_delay_ms */
    CWIST_JOB_BACKOFF_EXPONENTIAL = 1 /* retry_delay_ms, doubled after each further attempt */
};

/* Options of a queue beyond those of the contract. */
typedef struct cwist_job_queue_ext_opts {
    size_t struct_size;          /* set by cwist_job_queue_ext_opts_init() */
    int retry_backoff;           /* of enum cwist_job_backoff; default CWIST_JOB_BACKOFF_FIXED */
    uint64_t retry_delay_max_ms; /* cap of growing delays: retry_delay_ms to 365 days; default 1 h,
                                    or retry_delay_ms when that is longer */
    uint32_t retry_jitter_percent; /* up to so much of a delay is taken off at random: 0 to 100;
                                      default 0 */
    uint64_t max_length; /* no enqueue while so many jobs are ready, delayed or claimed: 1 to
                            1000000000; default 0, no limit */
    bool auto_renew; /* renew each claimed job, as cwist_job_queue_renew() does; default false */
} cwist_job_queue_ext_opts_t;

/* Fills the further options of a queue with the defaults. */
CWIST_API void cwist_job_queue_ext_opts_init(cwist_job_queue_ext_opts_t *ext);

/*
 * Opens a queue with further options: does what cwist_job_queue_open() does. ext may be NULL. The
 * retry policy and max_length are those of this handle; on NATS max_length is also a setting of the
 * stream, made by the first enqueue, and then the queue takes no delayed jobs.
 * Errors: as for cwist_job_queue_open().
 */
CWIST_API cwist_error_t cwist_job_queue_open_ext(cwist_job_queue_t **queue, cwist_job_conn_t *conn,
                                                 const cwist_job_queue_opts_t *opts,
                                                 const cwist_job_queue_ext_opts_t *ext);

/* ---- enqueue ---- */

/* A header of a job. */
typedef struct cwist_job_header {
    const char *name;  /* 1 to 128 of A-Z a-z 0-9 -, not beginning with Nats- or Cwist- in any
                          case */
    const char *value; /* up to 4096 bytes of UTF-8 without control characters, no space at its
                          ends */
} cwist_job_header_t;

enum { CWIST_JOB_HEADERS_MAX = 64 };

/* A job to store. Zero the struct before filling it in; what it points to is borrowed. */
typedef struct cwist_job_item {
    const void *payload; /* may be NULL when len is 0 */
    size_t len;          /* of the payload */
    const char *type;    /* NULL or "": none */
    uint64_t delay_ms; /* ready after so long, by the server's clock: 0 to 31536000000 (365 days) */
    const char *dedupe_key; /* NULL: none; 1 to 255 bytes of UTF-8 without control characters */
    const cwist_job_header_t *headers; /* may be NULL when header_count is 0 */
    size_t header_count;               /* up to CWIST_JOB_HEADERS_MAX; names differ */
} cwist_job_item_t;

/* What became of an item. */
typedef struct cwist_job_stored {
    int code;       /* CWIST_SUCCESS, or why it was not stored */
    bool duplicate; /* a live job has the dedupe key: nothing was stored, id is its id */
    char id[CWIST_JOB_ID_SIZE]; /* "" unless code is CWIST_SUCCESS */
} cwist_job_stored_t;

/*
 * Persists a job with options and tells what became of it. With a dedupe key at most one job of the
 * queue lives: a key is free again when its job is acked, dead or purged; a second enqueue until
 * then succeeds as a duplicate. stored may be NULL.
 * Errors: IO (nothing was stored), OUTCOME_UNKNOWN (the reply was lost; with a dedupe key it is
 * only left when the time was over), TOO_LARGE, FULL, UNSUPPORTED (a delay on NATS needs
 * server 2.12, and a queue without max_length), REFUSED, DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_enqueue_item(cwist_job_queue_t *queue,
                                                     const cwist_job_item_t *item,
                                                     cwist_job_stored_t *stored);

/*
 * Persists a job and tells its id: does what cwist_job_queue_enqueue() does, and writes the id with
 * a final NUL to id, a buffer of at least CWIST_JOB_ID_SIZE bytes ("" on failure).
 * Errors: as for cwist_job_queue_enqueue().
 */
CWIST_API cwist_error_t cwist_job_queue_enqueue_id(cwist_job_queue_t *queue, const void *payload,
                                                   size_t len, const char *type, char *id);

/* ---- claimed jobs ---- */

/*
 * Counts the headers of a claimed job. On NATS those of other publishers count too.
 * Returns: how many; 0 when the handle is not valid.
 */
CWIST_API size_t cwist_job_header_count(const cwist_job_t *job);

/*
 * Reads a header by its place, from 0 on. *name and *value are borrowed from the job.
 * Returns: false when there is none at that place.
 */
CWIST_API bool cwist_job_header_at(const cwist_job_t *job, size_t index, const char **name,
                                   const char **value);

/*
 * Reads a header by its name; the case of letters matters.
 * Returns: the value, borrowed from the job; NULL when there is none.
 */
CWIST_API const char *cwist_job_header_value(const cwist_job_t *job, const char *name);

/* How a job is handed back. Zero the struct before filling it in; what it points to is borrowed. */
typedef struct cwist_job_nack_opts {
    const char *reason; /* up to 4096 bytes of UTF-8; NULL: none */
    bool dead;          /* to the dead letters now, with the cause "rejected"; not with delayed */
    bool delayed;       /* delay_ms counts; else the retry policy of the queue */
    uint64_t delay_ms;  /* 0 to 31536000000 (365 days) */
} cwist_job_nack_opts_t;

/*
 * Hands the job back with options: does what cwist_job_queue_nack() does. A job that had its last
 * delivery becomes a dead letter, whatever the delay. opts may be NULL. A wrong option is
 * INVALID_PARAM and leaves the handle alive.
 * Errors: as for cwist_job_queue_ack().
 */
CWIST_API cwist_error_t cwist_job_queue_nack_with(cwist_job_queue_t *queue, cwist_job_t *job,
                                                  const cwist_job_nack_opts_t *opts);

/*
 * Hands the job back and says why: does what cwist_job_queue_nack() does, and keeps the reason with
 * the dead letter. It has up to 4096 bytes of UTF-8 (NULL: none; a longer one is INVALID_PARAM and
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
 * Puts the job off: hands it back, to be claimed after delay_ms (0 to 31536000000, 365 days), and
 * spends no attempt. Otherwise as cwist_job_queue_release(). A delay out of its range is
 * INVALID_PARAM and leaves the handle alive.
 * Errors: LEASE_LOST, IO (the job will come back), OUTCOME_UNKNOWN, UNSUPPORTED (a delay on NATS
 * needs server 2.12 and a queue without max_length; the job comes back when its lease ends).
 */
CWIST_API cwist_error_t cwist_job_queue_release_after(cwist_job_queue_t *queue, cwist_job_t *job,
                                                      uint64_t delay_ms);

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

/*
 * Keeps the lease of a claimed job: a thread of the library, one for the whole process, extends it
 * in time until the handle is settled or destroyed, or its queue. When it cannot, it logs a
 * warning. A job that is renewed already is fine.
 * Errors: LEASE_LOST (the lease is over already), NOMEM.
 */
CWIST_API cwist_error_t cwist_job_queue_renew(cwist_job_queue_t *queue, cwist_job_t *job);

/*
 * Tells whether the delivery was lost, as far as is known: the server said so, or the lease ended
 * by the local clock. No network call.
 * Returns: true when another worker may have the job; false for a handle that is not valid.
 */
CWIST_API bool cwist_job_lease_lost(const cwist_job_t *job);

/* ---- dead letters ---- */

/* A dead letter. All that it points to lives as long as its page. */
typedef struct cwist_job_dead_letter {
    const char *id;       /* that of the job */
    const char *type;     /* NULL: none */
    const char *cause;    /* "nacked", "lease-expired", "malformed" or "rejected" */
    const char *reason;   /* the caller's text; NULL: none */
    const char *consumer; /* the last one; NULL: not known */
    uint32_t attempts;    /* deliveries */
    uint64_t first_ms;    /* time of the first enqueue, ms since 1970 by the server; 0: not known */
    uint64_t died_ms;     /* time of death, likewise */
    size_t len;           /* of the payload */
    const void *payload;  /* NULL in a list */
    const cwist_job_header_t *headers; /* NULL: none */
    size_t header_count;               /* how many they are */
} cwist_job_dead_letter_t;

/* Letters that were read together. */
typedef struct cwist_job_dead_page cwist_job_dead_page_t;

/* Which dead letters. Zero the struct before filling it in; what it points to is borrowed. */
typedef struct cwist_job_dead_query {
    size_t most;       /* letters on the page: 1 to CWIST_JOB_BATCH_MAX; 0: 100 */
    bool oldest_first; /* default: newest first */
    const char *type;  /* only of this type, "" for those without one; NULL: all */
    const char *after; /* the mark of the page before; NULL: from the beginning */
} cwist_job_dead_query_t;

/*
 * Reads a page of dead letters without their payloads; changes nothing. Letters that come or go
 * between two pages shift no others. query may be NULL. With a type a page may have fewer letters
 * than asked for, even none, although others follow: the mark tells. On success *page is yours to
 * free, else NULL.
 * Errors: INVALID_PARAM (also when `after` is no mark), IO, DENIED.
 */
CWIST_API cwist_error_t cwist_job_dead_list(cwist_job_queue_t *queue,
                                            const cwist_job_dead_query_t *query,
                                            cwist_job_dead_page_t **page);

/*
 * Reads one dead letter with its payload. On success *page is yours to free, else NULL.
 * Errors: NOT_FOUND, IO, DENIED.
 */
CWIST_API cwist_error_t cwist_job_dead_read(cwist_job_queue_t *queue, const char *id,
                                            cwist_job_dead_page_t **page);

/*
 * Counts the letters of a page.
 * Returns: how many; 0 for NULL.
 */
CWIST_API size_t cwist_job_dead_page_count(const cwist_job_dead_page_t *page);

/*
 * Reads a letter of a page by its place, from 0 on.
 * Returns: the letter, which lives as long as the page; NULL when there is none at that place.
 */
CWIST_API const cwist_job_dead_letter_t *cwist_job_dead_page_at(const cwist_job_dead_page_t *page,
                                                                size_t index);

/*
 * Tells where the next page begins, for cwist_job_dead_query_t.after.
 * Returns: the mark, which lives as long as the page; NULL when this page is the last.
 */
CWIST_API const char *cwist_job_dead_page_mark(const cwist_job_dead_page_t *page);

/* Frees a page. NULL is allowed. */
CWIST_API void cwist_job_dead_page_free(cwist_job_dead_page_t *page);

/*
 * Moves a dead letter back into the queue, where it is ready and its attempts start again; the id
 * stays. One step for each job: two callers at once never double it.
 * Errors: NOT_FOUND (another one may have moved it), IO, OUTCOME_UNKNOWN, FULL, DENIED.
 */
CWIST_API cwist_error_t cwist_job_dead_requeue(cwist_job_queue_t *queue, const char *id);

/*
 * Moves all dead letters that are there now back into the queue, oldest first, or those of one type
 * (NULL: all; "": without one). *count is how many were moved, on failure too; it may be NULL. The
 * operation timeout holds for each piece of the work, not for the whole.
 * Errors: IO, OUTCOME_UNKNOWN, FULL, DENIED.
 */
CWIST_API cwist_error_t cwist_job_dead_requeue_all(cwist_job_queue_t *queue, const char *type,
                                                   uint64_t *count);

/*
 * Deletes a dead letter for good.
 * Errors: NOT_FOUND, IO, DENIED.
 */
CWIST_API cwist_error_t cwist_job_dead_purge(cwist_job_queue_t *queue, const char *id);

/*
 * Deletes for good the dead letters that are there now and died at least older_than_ms ago (0:
 * all), of one type (NULL: all; "": without one). Otherwise as cwist_job_dead_requeue_all().
 * Errors: IO, DENIED.
 */
CWIST_API cwist_error_t cwist_job_dead_purge_all(cwist_job_queue_t *queue, const char *type,
                                                 uint64_t older_than_ms, uint64_t *count);

/* ---- statistics, purge, pause ---- */

/*
 * What a queue holds, by the server; from `enqueued` on what this handle did since it was opened.
 */
typedef struct cwist_job_stats {
    size_t struct_size;       /* set it to sizeof(cwist_job_stats_t) */
    uint64_t ready;           /* lapsed jobs count as claimed until they are brought back */
    uint64_t claimed;         /* on NATS also those that wait after a nack */
    uint64_t delayed;         /* jobs that are not due yet */
    uint64_t dead;            /* dead letters */
    uint64_t oldest_ready_ms; /* age of the job that is ready longest; 0: none is ready */
    uint64_t consumers;       /* that hold or wait for jobs, as far as the server knows */
    bool paused;              /* claims are stopped */
    uint64_t enqueued;        /* jobs stored; duplicates do not count */
    uint64_t delivered;       /* jobs that claims brought */
    uint64_t acked;           /* jobs */
    uint64_t nacked;          /* jobs, those that became dead letters too */
    uint64_t released;        /* jobs */
    uint64_t buried;          /* jobs moved to the dead letters */
} cwist_job_stats_t;

/*
 * Reads the statistics of a queue. On failure nothing is written.
 * Errors: INVALID_PARAM (also for a wrong struct_size), IO, DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_stats(cwist_job_queue_t *queue, cwist_job_stats_t *stats);

/*
 * Deletes for good the jobs that are ready or delayed now; claimed and dead ones stay. *count is
 * how many were deleted, on failure too; it may be NULL. The operation timeout holds for each piece
 * of the work, not for the whole. Errors: IO, OUTCOME_UNKNOWN, DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_purge(cwist_job_queue_t *queue, uint64_t *count);

/*
 * Stops all claims of the queue, by anyone, until cwist_job_queue_resume(): claims wait on. Within
 * a second it holds everywhere; claimed jobs are not touched. It is kept on the server. Errors:
 * UNSUPPORTED (on NATS it needs server 2.11), IO, DENIED.
 */
CWIST_API cwist_error_t cwist_job_queue_pause(cwist_job_queue_t *queue);

/*
 * Lets the claims of a queue go on.
 * Errors: as for cwist_job_queue_pause().
 */
CWIST_API cwist_error_t cwist_job_queue_resume(cwist_job_queue_t *queue);

/* ---- batches ----
 *
 * Each call takes 1 to CWIST_JOB_BATCH_MAX items, sends them in pieces of a bounded size, one round
 * trip a piece, and tells a result for each item. The result of the call is CWIST_SUCCESS when
 * every item succeeded, else the code of the first item that failed, and cwist_job_last_error() is
 * about that one. The operation timeout holds for the whole batch. A batch is no transaction,
 * except where a function says so.
 */

enum { CWIST_JOB_BATCH_MAX = 1000 };

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
