/* The memory backend: connections, queues, and the table of operations. */
#include "memory/memory.h"
#include "platform/clock.h"

static int conn_open(cwist_jq__conn *conn, uint64_t deadline)
{
    (void)deadline;
    conn->impl = cwist_jq__memory_store_get(conn->url.store);
    return conn->impl != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
}

static int ping(cwist_jq__conn *conn, uint64_t deadline)
{
    (void)conn;
    (void)deadline;
    return CWIST_SUCCESS;
}

static void conn_close(cwist_jq__conn *conn)
{
    cwist_jq__memory_store_give(conn->impl);
    conn->impl = NULL;
}

static int queue_open(cwist_jq__queue *queue)
{
    cwist_jq__memory_handle *handle = cwist_jq__calloc(1, sizeof *handle);

    if (handle == NULL) {
        return cwist_jq__no_memory();
    }
    handle->store = queue->conn->impl;
    cwist_jq__lock(&handle->store->lock);
    handle->queue = cwist_jq__memory_queue_get(handle->store, queue->name);
    if (handle->queue != NULL) {
        handle->worker = cwist_jq__memory_worker_get(handle->queue, queue->consumer);
    }
    cwist_jq__unlock(&handle->store->lock);
    if (handle->worker == NULL) {
        cwist_jq__free(handle);
        return cwist_jq__no_memory();
    }
    queue->impl = handle;
    return CWIST_SUCCESS;
}

static void queue_close(cwist_jq__queue *queue)
{
    cwist_jq__memory_handle *handle = queue->impl;

    cwist_jq__lock(&handle->store->lock);
    cwist_jq__memory_worker_unref(handle->queue, handle->worker);
    cwist_jq__unlock(&handle->store->lock);
    cwist_jq__free(handle);
    queue->impl = NULL;
}

/* The clock by which letters died. */
static int server_time(cwist_jq__queue *queue, uint64_t deadline, uint64_t *now_ms)
{
    (void)deadline;
    *now_ms = cwist_jq__memory_time(cwist_jq__memory_of(queue)->store, cwist_jq__now());
    return CWIST_SUCCESS;
}

static const cwist_jq__ops memory_ops = {
    .engine = "memory",
    .conn_open = conn_open,
    .ping = ping,
    .conn_close = conn_close,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .check_size = cwist_jq__memory_check_size,
    .enqueue = cwist_jq__memory_enqueue,
    .claim_start = cwist_jq__memory_claim_start,
    .claim_wait = cwist_jq__memory_claim_wait,
    .ack_and_poll = cwist_jq__memory_ack_and_poll,
    .claim_end = cwist_jq__memory_claim_end,
    .ack = cwist_jq__memory_ack,
    .retry = cwist_jq__memory_retry,
    .release = cwist_jq__memory_release,
    .bury = cwist_jq__memory_bury,
    .extend = cwist_jq__memory_extend,
    .dead_count = cwist_jq__memory_dead_count,
    .dead_list = cwist_jq__memory_dead_list,
    .dead_find = cwist_jq__memory_dead_find,
    .dead_requeue = cwist_jq__memory_dead_requeue,
    .dead_remove = cwist_jq__memory_dead_remove,
    .server_time = server_time,
    .stats = cwist_jq__memory_stats,
    .purge = cwist_jq__memory_purge,
    .pause = cwist_jq__memory_pause,
};

const cwist_jq__ops *const cwist_jq__backend_memory = &memory_ops;
