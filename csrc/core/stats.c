/* A queue as a whole: what it holds, and its purge and pause. */
#include <string.h>

#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"

/* ---- statistics ---- */

static void add_counters(cwist_job_stats_t *stats, const cwist_jq__counters *counters)
{
    stats->enqueued = atomic_load(&counters->enqueued);
    stats->delivered = atomic_load(&counters->delivered);
    stats->acked = atomic_load(&counters->acked);
    stats->nacked = atomic_load(&counters->nacked);
    stats->released = atomic_load(&counters->released);
    stats->buried = atomic_load(&counters->buried);
}

static int check_stats(const cwist_job_stats_t *stats)
{
    if (stats == NULL) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "stats is NULL");
    }
    return stats->struct_size >= sizeof(size_t) && stats->struct_size <= sizeof *stats
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                "stats->struct_size is %zu; set it to the size of "
                                "cwist_job_stats_t of this version, %zu",
                                stats->struct_size, sizeof *stats);
}

cwist_error_t cwist_job_queue_stats(cwist_job_queue_t *handle, cwist_job_stats_t *stats)
{
    cwist_job_stats_t own = {0};
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__begin(&queue, handle, "stats");

    if (status == CWIST_SUCCESS) {
        status = check_stats(stats);
    }
    if (status == CWIST_SUCCESS) {
        status = queue->conn->ops->stats(queue, cwist_jq__operation_deadline(queue), &own);
    }
    if (status == CWIST_SUCCESS) {
        add_counters(&own, &queue->counters);
        own.struct_size = stats->struct_size;
        memcpy(stats, &own, own.struct_size);
    }
    return cwist_jq__end(queue, "stats", status);
}

cwist_error_t cwist_job_queue_dead_count(cwist_job_queue_t *handle, uint64_t *count)
{
    cwist_jq__queue *queue = NULL;
    uint64_t found = 0;
    int status = cwist_jq__begin(&queue, handle, "dead_count");

    if (status == CWIST_SUCCESS && count == NULL) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "count is NULL");
    }
    if (status == CWIST_SUCCESS) {
        status = queue->conn->ops->dead_count(queue, cwist_jq__operation_deadline(queue), &found);
    }
    if (count != NULL) {
        *count = found;
    }
    return cwist_jq__end(queue, "dead_count", status);
}

/* ---- purge ---- */

static int purge(cwist_jq__queue *queue, uint64_t *count)
{
    uint64_t mark = 0;
    bool more = true;
    int status = CWIST_SUCCESS;

    while (status == CWIST_SUCCESS && more) {
        more = false;
        status = queue->conn->ops->purge(queue, cwist_jq__operation_deadline(queue), &mark, count,
                                         &more);
    }
    return status;
}

cwist_error_t cwist_job_queue_purge(cwist_job_queue_t *handle, uint64_t *count)
{
    cwist_jq__queue *queue = NULL;
    uint64_t done = 0;
    int status = cwist_jq__begin(&queue, handle, "purge");

    if (status == CWIST_SUCCESS) {
        status = purge(queue, &done);
    }
    if (count != NULL) {
        *count = done;
    }
    return cwist_jq__end(queue, "purge", status);
}

/* ---- pause ---- */

static cwist_error_t set_paused(cwist_job_queue_t *handle, bool paused, const char *operation)
{
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__begin(&queue, handle, operation);

    if (status == CWIST_SUCCESS) {
        status = queue->conn->ops->pause(queue, paused, cwist_jq__operation_deadline(queue));
    }
    return cwist_jq__end(queue, operation, status);
}

cwist_error_t cwist_job_queue_pause(cwist_job_queue_t *queue)
{
    return set_paused(queue, true, "pause");
}

cwist_error_t cwist_job_queue_resume(cwist_job_queue_t *queue)
{
    return set_paused(queue, false, "resume");
}
