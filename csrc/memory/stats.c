/* The state of a whole queue: counted, emptied, paused. */
#include "memory/memory.h"
#include "platform/clock.h"

int cwist_jq__memory_stats(cwist_jq__queue *queue, uint64_t deadline, cwist_job_stats_t *stats)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_enter(queue);
    uint64_t now = cwist_jq__now();

    (void)deadline;
    stats->ready = own->ready.count;
    stats->claimed = own->claimed.count;
    stats->delayed = own->delayed.count;
    stats->dead = own->dead.count;
    stats->oldest_ready_ms = 0;
    if (own->ready.first != NULL) {
        uint64_t age_ms = (now - own->ready.first->moment) / CWIST_JQ_MS;
        stats->oldest_ready_ms = age_ms != 0 ? age_ms : 1; /* 0 says that none is ready */
    }
    stats->consumers = 0;
    for (const cwist_jq__memory_worker *at = own->workers; at != NULL; at = at->next) {
        stats->consumers += at->held != 0 || at->waiting != 0 ? 1 : 0;
    }
    stats->paused = own->paused;
    cwist_jq__memory_leave(queue);
    return CWIST_SUCCESS;
}

/* All at once: in memory that is quick. */
int cwist_jq__memory_purge(cwist_jq__queue *queue, uint64_t deadline, uint64_t *mark,
                           uint64_t *count, bool *more)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_enter(queue);

    (void)deadline;
    (void)mark;
    *count += (uint64_t)own->ready.count + own->delayed.count;
    *more = false;
    while (own->ready.first != NULL) {
        cwist_jq__memory_job *job = own->ready.first;
        cwist_jq__memory_take_out(own, job);
        cwist_jq__memory_forget(own, job);
    }
    while (own->delayed.count != 0) {
        cwist_jq__memory_job *job = own->delayed.at[own->delayed.count - 1];
        cwist_jq__memory_take_out(own, job);
        cwist_jq__memory_forget(own, job);
    }
    cwist_jq__memory_leave(queue);
    return CWIST_SUCCESS;
}

int cwist_jq__memory_pause(cwist_jq__queue *queue, bool paused, uint64_t deadline)
{
    (void)deadline;
    cwist_jq__memory_enter(queue)->paused = paused;
    cwist_jq__memory_leave(queue);
    return CWIST_SUCCESS;
}
