/* What a queue handle has of its store, and the way into it. */
#include "memory/memory.h"

cwist_jq__memory_handle *cwist_jq__memory_of(const cwist_jq__queue *queue)
{
    return queue->impl;
}

cwist_jq__memory_queue *cwist_jq__memory_enter(cwist_jq__queue *queue)
{
    const cwist_jq__memory_handle *handle = cwist_jq__memory_of(queue);

    cwist_jq__lock(&handle->store->lock);
    if (handle->queue->visibility_ms != 0) {
        atomic_store(&queue->server_visibility_ms, handle->queue->visibility_ms);
    }
    return handle->queue;
}

/* One is enough: a claim that is woken comes by here too, when it has taken its jobs. */
void cwist_jq__memory_leave(cwist_jq__queue *queue)
{
    const cwist_jq__memory_handle *handle = cwist_jq__memory_of(queue);

    if (handle->queue->ready.count != 0 && !handle->queue->paused) {
        cwist_jq__condition_wake_one(&handle->queue->changed);
    }
    cwist_jq__unlock(&handle->store->lock);
}

cwist_jq__memory_job *cwist_jq__memory_find(const cwist_jq__memory_queue *queue, uint64_t id)
{
    return (cwist_jq__memory_job *)(void *)cwist_jq__memory_table_first(&queue->ids, id);
}

bool cwist_jq__memory_number(const char *text, size_t len, uint64_t *number)
{
    uint64_t value = 0;
    bool good = len >= 1 && len <= 19 && text[0] != '0';

    for (size_t i = 0; i < len && good; i++) {
        good = text[i] >= '0' && text[i] <= '9';
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *number = value;
    return good;
}
