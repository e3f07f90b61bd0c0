/*
 * What _shim.c adds to the library for Python. cffi reads this file; comments and plain
 * declarations only.
 */

/* Codes of the shim, beside the library's: all of those are 0 or negative. */
enum {
    CWIST_PY_PENDING = 1,   /* the slice ended, the claim goes on */
    CWIST_PY_SETTLED = 2,   /* the delivery was acked, nacked or released before */
    CWIST_PY_NO_MEMORY = 3, /* the shim itself is out of memory */
    CWIST_PY_LOGGED = 4     /* success, and there are lines of log to fetch */
};

/* Stands before the id of a duplicate in a text of ids. */
enum { CWIST_PY_DUPLICATE = 61 };

enum cwist_py_end { CWIST_PY_ACK, CWIST_PY_NACK, CWIST_PY_RELEASE };

/* A payload up to this size is copied at once, a longer one when it is asked for. */
#define CWIST_PY_SMALL ...

/* One claim and what it brought. The rest of the struct is the shim's own. */
typedef struct cwist_py_batch {
    size_t count;
    const char *texts; /* id and type of each job, each with its NUL; no type is "" */
    size_t texts_len;
    const char *payloads; /* the small ones, one behind the other; they follow the texts */
    size_t payloads_len;
    const size_t *sizes; /* of all payloads */
    const uint32_t *attempts;
    size_t size;      /* of the first payload */
    uint32_t attempt; /* of the first job */
    ...;
} cwist_py_batch;

static int cwist_py_connect(cwist_job_conn_t **conn, const char *url, uint64_t connect_ms,
                            uint64_t operation_ms);
static int cwist_py_open(cwist_job_queue_t **queue, cwist_job_conn_t *conn, const char *name,
                         const char *consumer, uint64_t visibility_ms, uint32_t max_retries,
                         uint64_t retry_delay_ms, const cwist_job_queue_ext_opts_t *ext);
static int cwist_py_interrupt(cwist_job_queue_t *queue);

static int cwist_py_enqueue(cwist_job_queue_t *queue, const void *payload, size_t len,
                            const char *type, char *id);
static int cwist_py_enqueue_item(cwist_job_queue_t *queue, cwist_job_stored_t *stored,
                                 const void *payload, size_t len, const char *type,
                                 uint64_t delay_ms, const char *key, const char *headers,
                                 size_t header_count);
static int cwist_py_enqueue_joined(cwist_job_queue_t *queue, cwist_job_item_t *items,
                                   cwist_job_stored_t *stored, size_t count, const char *payloads,
                                   const size_t *sizes, const char *type, bool whole);
static int cwist_py_enqueue_apart(cwist_job_queue_t *queue, cwist_job_item_t *items,
                                  cwist_job_stored_t *stored, size_t count,
                                  const char *const *payloads, const size_t *sizes,
                                  const char *const *types, bool whole, const uint64_t *delays_ms,
                                  const char *const *keys, const char *headers,
                                  const size_t *header_counts, cwist_job_header_t *room);

static int cwist_py_claim(cwist_py_batch *batch, cwist_job_queue_t *queue, size_t most,
                          uint64_t timeout_ms, uint64_t slice_ms);
static int cwist_py_claim_wait(cwist_py_batch *batch, uint64_t slice_ms);
static void cwist_py_claim_undo(cwist_py_batch *batch, cwist_job_queue_t *queue);
static void cwist_py_described(cwist_py_batch *batch);
static const void *cwist_py_payload(const cwist_py_batch *batch, size_t index);
static const char *cwist_py_headers(const cwist_py_batch *batch, size_t index, size_t *size);
static void cwist_py_drop(cwist_py_batch *batch);

static int cwist_py_ack(cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue);
static int cwist_py_nack(cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue,
                         const char *reason, bool dead, bool delayed, uint64_t delay_ms);
static int cwist_py_release(cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue,
                            uint64_t delay_ms);
static int cwist_py_settle_many(cwist_py_batch *const *batches, const uint32_t *indices,
                                size_t count, cwist_job_queue_t *queue, enum cwist_py_end end,
                                int *codes);
static int cwist_py_ack_and_claim(cwist_py_batch *next, cwist_job_queue_t *queue, size_t most,
                                  cwist_py_batch *const *batches, const uint32_t *indices,
                                  size_t count, int *codes);
static int cwist_py_extend(const cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue);
static int cwist_py_renew(const cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue);
static bool cwist_py_is_settled(const cwist_py_batch *batch, size_t index);
static bool cwist_py_lease_lost(const cwist_py_batch *batch, size_t index);
static uint64_t cwist_py_lease_ms(const cwist_py_batch *batch, size_t index);

static int cwist_py_dead_count(cwist_job_queue_t *queue, uint64_t *count);
static int cwist_py_dead_list(cwist_job_queue_t *queue, cwist_job_dead_page_t **page, size_t most,
                              bool oldest_first, const char *type, const char *after);
static int cwist_py_dead_read(cwist_job_queue_t *queue, cwist_job_dead_page_t **page,
                              const char *id);
static int cwist_py_dead_requeue(cwist_job_queue_t *queue, const char *id);
static int cwist_py_dead_requeue_all(cwist_job_queue_t *queue, const char *type, uint64_t *count);
static int cwist_py_dead_purge(cwist_job_queue_t *queue, const char *id);
static int cwist_py_dead_purge_all(cwist_job_queue_t *queue, const char *type,
                                   uint64_t older_than_ms, uint64_t *count);
static int cwist_py_stats(cwist_job_queue_t *queue, cwist_job_stats_t *stats);
static int cwist_py_purge(cwist_job_queue_t *queue, uint64_t *count);
static int cwist_py_pause(cwist_job_queue_t *queue, bool paused);

static bool cwist_py_log_waiting(void);
static int cwist_py_log_take(char *text, size_t size);
static void cwist_py_log_after_fork(void);
