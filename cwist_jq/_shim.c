/*
 * The C side of the binding: what would be slow or unsafe to do from Python. Every function may be
 * called from any thread, without the interpreter's lock.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cwist/sys/job/durable_queue_ext.h>

#include "platform/thread.h"

enum { CWIST_PY_PENDING = 1, CWIST_PY_SETTLED = 2 };

enum cwist_py_end { CWIST_PY_ACK, CWIST_PY_NACK, CWIST_PY_RELEASE };

typedef struct cwist_py_delivery {
    const void *payload;
    size_t payload_len;
    const char *id;
    const char *type;
    uint32_t attempts;
    cwist_job_claim_t *claim;   /* NULL: it ended */
    _Atomic(cwist_job_t *) job; /* NULL: none yet, or settled */
} cwist_py_delivery;

static int code_of(cwist_error_t error)
{
    return cwist_job_error_code(&error);
}

/* ---- log: a ring that Python empties when it is inside a call anyway ----
 *
 * No call into Python is made from here: a thread of the library may log while the interpreter is
 * shutting down. One ring serves all connections, so nothing has to outlive a connection.
 */

#define LOG_LINES 64
#define LOG_TEXT 512

typedef struct log_line {
    int level;
    char text[LOG_TEXT];
} log_line;

static cwist_jq__mutex log_mutex = CWIST_JQ_MUTEX_INIT;
static log_line log_ring[LOG_LINES];
static unsigned log_first;
static unsigned log_dropped;
static atomic_uint log_count;

/* Copies text, cut at the start of a character of UTF-8 when it is too long. */
static void copy_text(char *to, size_t size, const char *text)
{
    size_t len = strlen(text);

    if (len >= size) {
        len = size - 1;
        while (len > 0 && ((unsigned char)text[len] & 0xC0u) == 0x80u) {
            len--;
        }
    }
    memcpy(to, text, len);
    to[len] = '\0';
}

static void log_push(void *context, int level, const char *text)
{
    (void)context;
    cwist_jq__lock(&log_mutex);
    unsigned count = atomic_load(&log_count);
    if (count < LOG_LINES) {
        log_line *line = &log_ring[(log_first + count) % LOG_LINES];
        line->level = level;
        copy_text(line->text, sizeof line->text, text);
        atomic_store(&log_count, count + 1);
    } else {
        log_dropped++;
    }
    cwist_jq__unlock(&log_mutex);
}

static bool cwist_py_log_waiting(void)
{
    return atomic_load_explicit(&log_count, memory_order_relaxed) != 0;
}

/* Takes the oldest line. Returns its level, 0 when there is none. */
static int cwist_py_log_take(char *text, size_t size)
{
    int level = 0;

    cwist_jq__lock(&log_mutex);
    unsigned count = atomic_load(&log_count);
    if (count != 0) {
        level = log_ring[log_first].level;
        copy_text(text, size, log_ring[log_first].text);
        log_first = (log_first + 1) % LOG_LINES;
        atomic_store(&log_count, count - 1);
    } else if (log_dropped != 0) {
        level = CWIST_JOB_LOG_WARNING;
        (void)snprintf(text, size, "%u lines of log were dropped", log_dropped);
        log_dropped = 0;
    }
    cwist_jq__unlock(&log_mutex);
    return level;
}

/* For a forked child: the lock may have been held, and the lines are the parent's to log. */
static void cwist_py_log_after_fork(void)
{
    cwist_jq__mutex_init(&log_mutex);
    atomic_store(&log_count, 0);
    log_dropped = 0;
}

/* ---- connections and queues ---- */

static int cwist_py_connect(cwist_job_conn_t **conn, const char *url, uint64_t connect_ms,
                            uint64_t operation_ms)
{
    cwist_job_conn_opts_t opts;

    cwist_job_conn_opts_init(&opts);
    opts.connect_timeout_ms = connect_ms;
    opts.operation_timeout_ms = operation_ms;
    opts.log = log_push;
    return code_of(cwist_job_conn_open(conn, url, &opts));
}

static int cwist_py_open(cwist_job_queue_t **queue, cwist_job_conn_t *conn, const char *name,
                         const char *consumer, uint64_t visibility_ms, uint32_t max_retries,
                         uint64_t retry_delay_ms)
{
    cwist_job_queue_opts_t opts = {name, consumer, visibility_ms, max_retries, retry_delay_ms};
    return code_of(cwist_job_queue_open(queue, conn, &opts));
}

static int cwist_py_enqueue(cwist_job_queue_t *queue, const void *payload, size_t len,
                            const char *type, char *id)
{
    return code_of(cwist_job_queue_enqueue_id(queue, payload, len, type, id));
}

static int cwist_py_dead_count(cwist_job_queue_t *queue, uint64_t *count)
{
    return code_of(cwist_job_queue_dead_count(queue, count));
}

static int cwist_py_interrupt(cwist_job_queue_t *queue)
{
    return code_of(cwist_job_queue_interrupt(queue));
}

/* ---- deliveries ---- */

static void end_claim(cwist_py_delivery *delivery)
{
    cwist_job_claim_end(delivery->claim);
    delivery->claim = NULL;
}

static void take_job(cwist_py_delivery *delivery, cwist_job_t *job)
{
    delivery->payload = cwist_job_payload(job, &delivery->payload_len);
    delivery->id = cwist_job_id(job);
    delivery->type = cwist_job_type(job);
    delivery->attempts = cwist_job_attempts(job);
    atomic_store(&delivery->job, job);
}

/*
 * Waits on for a job. SUCCESS: the delivery holds it. After another error than TIMEOUT the claim is
 * still there, because ending it could replace the error's text.
 */
static int cwist_py_claim_wait(cwist_py_delivery *delivery, uint64_t slice_ms)
{
    cwist_job_t *job = NULL;
    size_t count = 0;
    int code = code_of(cwist_job_claim_wait(delivery->claim, slice_ms, &job, &count));

    if (code == CWIST_SUCCESS && job == NULL) {
        return CWIST_PY_PENDING;
    }
    if (job != NULL) {
        take_job(delivery, job);
    }
    if (code == CWIST_SUCCESS || code == CWIST_ERROR_TIMEOUT) {
        end_claim(delivery);
    }
    return code;
}

/* Starts a claim and waits its first slice. delivery is zeroed or was dropped. */
static int cwist_py_claim(cwist_py_delivery *delivery, cwist_job_queue_t *queue,
                          uint64_t timeout_ms, uint64_t slice_ms)
{
    int code = code_of(cwist_job_claim_start(&delivery->claim, queue, 1, timeout_ms));
    return code == CWIST_SUCCESS ? cwist_py_claim_wait(delivery, slice_ms) : code;
}

/* Ends a claim that Python gave up; a job that arrived meanwhile goes back, no attempt spent. */
static void cwist_py_claim_undo(cwist_py_delivery *delivery, cwist_job_queue_t *queue)
{
    cwist_job_t *job = atomic_exchange(&delivery->job, NULL);

    if (job != NULL) {
        (void)code_of(cwist_job_queue_release(queue, job));
    }
    end_claim(delivery);
}

/*
 * Ends the delivery; of several threads one does it, the others are told SETTLED. INVALID_PARAM
 * leaves the delivery as it was.
 */
static int cwist_py_settle(cwist_py_delivery *delivery, cwist_job_queue_t *queue,
                           enum cwist_py_end end, const char *reason)
{
    cwist_job_t *job = atomic_exchange(&delivery->job, NULL);
    int code = CWIST_PY_SETTLED;

    if (job == NULL) {
        return code;
    }
    switch (end) {
    case CWIST_PY_ACK:
        code = code_of(cwist_job_queue_ack(queue, job));
        break;
    case CWIST_PY_NACK:
        code = code_of(cwist_job_queue_nack_reason(queue, job, reason));
        break;
    case CWIST_PY_RELEASE:
        code = code_of(cwist_job_queue_release(queue, job));
        break;
    }
    if (code == CWIST_ERROR_INVALID_PARAM) {
        atomic_store(&delivery->job, job);
    }
    return code;
}

static int cwist_py_extend(cwist_py_delivery *delivery, cwist_job_queue_t *queue)
{
    cwist_job_t *job = atomic_load(&delivery->job);
    return job != NULL ? code_of(cwist_job_queue_extend(queue, job)) : CWIST_PY_SETTLED;
}

static bool cwist_py_is_settled(const cwist_py_delivery *delivery)
{
    return atomic_load(&delivery->job) == NULL;
}

/* The net under a delivery that nobody settled: its job comes back when the lease ends. */
static void cwist_py_drop(cwist_py_delivery *delivery)
{
    cwist_job_destroy(atomic_exchange(&delivery->job, NULL));
    end_claim(delivery);
}
