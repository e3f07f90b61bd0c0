/*
 * What _shim.c adds to the library for Python. cffi reads this file; comments and plain
 * declarations only.
 */

/* Codes of the shim, beside the library's: all of those are 0 or negative. */
enum {
    CWIST_PY_PENDING = 1, /* the slice ended, the claim goes on */
    CWIST_PY_SETTLED = 2  /* the delivery was acked, nacked or released before */
};

enum cwist_py_end { CWIST_PY_ACK, CWIST_PY_NACK, CWIST_PY_RELEASE };

/* One claim and, once it arrived, its job. The rest of the struct is the shim's own. */
typedef struct cwist_py_delivery {
    const void *payload;
    size_t payload_len;
    const char *id;
    const char *type; /* NULL: none */
    uint32_t attempts;
    ...;
} cwist_py_delivery;

static int cwist_py_connect(cwist_job_conn_t **conn, const char *url, uint64_t connect_ms,
                            uint64_t operation_ms);
static int cwist_py_open(cwist_job_queue_t **queue, cwist_job_conn_t *conn, const char *name,
                         const char *consumer, uint64_t visibility_ms, uint32_t max_retries,
                         uint64_t retry_delay_ms);
static int cwist_py_enqueue(cwist_job_queue_t *queue, const void *payload, size_t len,
                            const char *type, char *id);
static int cwist_py_dead_count(cwist_job_queue_t *queue, uint64_t *count);
static int cwist_py_interrupt(cwist_job_queue_t *queue);

static int cwist_py_claim(cwist_py_delivery *delivery, cwist_job_queue_t *queue,
                          uint64_t timeout_ms, uint64_t slice_ms);
static int cwist_py_claim_wait(cwist_py_delivery *delivery, uint64_t slice_ms);
static void cwist_py_claim_undo(cwist_py_delivery *delivery, cwist_job_queue_t *queue);
static int cwist_py_settle(cwist_py_delivery *delivery, cwist_job_queue_t *queue,
                           enum cwist_py_end end, const char *reason);
static int cwist_py_extend(cwist_py_delivery *delivery, cwist_job_queue_t *queue);
static bool cwist_py_is_settled(const cwist_py_delivery *delivery);
static void cwist_py_drop(cwist_py_delivery *delivery);

static bool cwist_py_log_waiting(void);
static int cwist_py_log_take(char *text, size_t size);
static void cwist_py_log_after_fork(void);
