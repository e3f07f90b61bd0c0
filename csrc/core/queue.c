/* Queues: open, close, interrupt; the words around an operation. */
#include <string.h>

#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"
#include "core/renewals.h"

/* ---- the words around an operation ---- */

int cwist_jq__begin(cwist_jq__queue **queue, const cwist_job_queue_t *handle, const char *operation)
{
    void *object = NULL;
    int status = cwist_jq__handle_get(&object, handle, CWIST_JQ_KIND_QUEUE, "queue");

    *queue = object;
    if (status != CWIST_SUCCESS) {
        cwist_jq__error_prefix("%s: ", operation);
    }
    return status;
}

cwist_error_t cwist_jq__end(cwist_jq__queue *queue, const char *operation, int status)
{
    if (queue != NULL) {
        if (status != CWIST_SUCCESS) {
            cwist_jq__error_prefix("%s on queue %s at %s: ", operation, queue->name,
                                   queue->conn->url.label);
        }
        cwist_jq__unref(queue);
    }
    return cwist_jq__result(status);
}

uint64_t cwist_jq__operation_deadline(const cwist_jq__queue *queue)
{
    return cwist_jq__after_ms(queue->conn->operation_timeout_ms);
}

/* ---- open and close ---- */

static void queue_finish(void *object)
{
    cwist_jq__queue *queue = object;

    if (queue->impl != NULL) {
        queue->conn->ops->queue_close(queue);
    }
    cwist_jq__unref(queue->conn);
    cwist_jq__free(queue->name);
    cwist_jq__free(queue->consumer);
    cwist_jq__free(queue);
}

static int make_queue(void **handle, cwist_jq__conn *conn, const cwist_job_queue_opts_t *opts,
                      const cwist_job_queue_ext_opts_t *ext)
{
    cwist_jq__queue *queue = cwist_jq__calloc(1, sizeof *queue);

    if (queue == NULL) {
        return cwist_jq__no_memory();
    }
    cwist_jq__object_init(queue, CWIST_JQ_KIND_QUEUE, queue_finish);
    cwist_jq__ref(conn);
    queue->conn = conn;

    int status = cwist_jq__apply_opts(queue, opts);
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__apply_ext_opts(queue, ext);
    }
    if (status == CWIST_SUCCESS) {
        status = conn->ops->queue_open(queue);
    }
    if (status == CWIST_SUCCESS) {
        status = conn->ops->ping(conn, cwist_jq__operation_deadline(queue));
    }
    if (status == CWIST_SUCCESS) {
        *handle = cwist_jq__handle_new(queue);
        status = *handle != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__unref(queue);
    }
    return status;
}

/* Opens a queue on a connection handle; engine NULL allows any. */
static int open_queue(void **handle, const void *conn_handle, const char *engine,
                      const cwist_job_queue_opts_t *opts, const cwist_job_queue_ext_opts_t *ext)
{
    void *object = NULL;
    int status = cwist_jq__handle_get(&object, conn_handle, CWIST_JQ_KIND_CONN, "connection");
    cwist_jq__conn *conn = object;

    *handle = NULL;
    if (status == CWIST_SUCCESS && engine != NULL && strcmp(conn->ops->engine, engine) != 0) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "the connection is to %s, not to %s",
                                conn->ops->engine, engine);
    }
    if (status == CWIST_SUCCESS) {
        status = make_queue(handle, conn, opts, ext);
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__error_prefix("open queue%s%s: ", conn != NULL ? " at " : "",
                               conn != NULL ? conn->url.label : "");
    }
    cwist_jq__unref(conn);
    return status;
}

cwist_error_t cwist_job_queue_open_ext(cwist_job_queue_t **queue, cwist_job_conn_t *conn,
                                       const cwist_job_queue_opts_t *opts,
                                       const cwist_job_queue_ext_opts_t *ext)
{
    if (queue == NULL) {
        return cwist_jq__result(
            cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "open queue: queue is NULL"));
    }
    void *handle = NULL;
    int status = open_queue(&handle, conn, NULL, opts, ext);
    *queue = handle;
    return cwist_jq__result(status);
}

cwist_error_t cwist_job_queue_open(cwist_job_queue_t **queue, cwist_job_conn_t *conn,
                                   const cwist_job_queue_opts_t *opts)
{
    return cwist_job_queue_open_ext(queue, conn, opts, NULL);
}

cwist_job_queue_t *cwist_job_queue_create_redis(cwist_redis_t *redis,
                                                const cwist_job_queue_opts_t *opts)
{
    void *handle = NULL;
    (void)open_queue(&handle, redis, "redis", opts, NULL);
    return handle;
}

cwist_job_queue_t *cwist_job_queue_create_nats(cwist_nats_t *nats,
                                               const cwist_job_queue_opts_t *opts)
{
    void *handle = NULL;
    (void)open_queue(&handle, nats, "nats", opts, NULL);
    return handle;
}

void cwist_job_queue_destroy(cwist_job_queue_t *handle)
{
    void *object = NULL;
    if (handle == NULL ||
        cwist_jq__handle_take(&object, handle, CWIST_JQ_KIND_QUEUE, "queue") != CWIST_SUCCESS) {
        return;
    }
    cwist_jq__queue *queue = object;
    atomic_store(&queue->closed, true);
    cwist_jq__keep_none(queue);
    cwist_jq__unref(queue);
}

/* ---- visibility ---- */

uint64_t cwist_jq__lease_ms(const cwist_jq__queue *queue)
{
    uint64_t server = atomic_load(&queue->server_visibility_ms);
    return server != 0 && server < queue->visibility_ms ? server : queue->visibility_ms;
}

void cwist_jq__visibility_taken_over(cwist_jq__queue *queue, uint64_t previous_ms)
{
    cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                  "queue %s at %s: visibility timeout changed from %llu ms to %llu ms by consumer "
                  "%s; it holds for all workers of the queue",
                  queue->name, queue->conn->url.label, (unsigned long long)previous_ms,
                  (unsigned long long)queue->visibility_ms, queue->consumer);
}

/* ---- interrupt ---- */

cwist_error_t cwist_job_queue_interrupt(cwist_job_queue_t *handle)
{
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__begin(&queue, handle, "interrupt");

    if (status == CWIST_SUCCESS) {
        atomic_fetch_add(&queue->interrupts, 1);
    }
    return cwist_jq__end(queue, "interrupt", status);
}
