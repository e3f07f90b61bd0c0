/* The retry policy of a queue handle: how long a nacked job waits. */
#include "core/internal.h"

/* The delay, doubled `times` times, up to the cap. */
static uint64_t doubled(uint64_t delay_ms, uint32_t times, uint64_t cap_ms)
{
    while (times > 0 && delay_ms != 0 && delay_ms < cap_ms) {
        delay_ms *= 2; /* it is at most a year before */
        times--;
    }
    return delay_ms < cap_ms ? delay_ms : cap_ms;
}

uint64_t cwist_jq__retry_delay_ms(const cwist_jq__queue *queue, uint32_t attempts)
{
    uint64_t delay_ms = queue->retry_delay_ms;

    if (queue->retry_backoff == CWIST_JOB_BACKOFF_EXPONENTIAL && attempts > 1) {
        delay_ms = doubled(delay_ms, attempts - 1, queue->retry_delay_max_ms);
    }
    uint64_t spread = delay_ms * queue->retry_jitter_percent / 100;
    return spread != 0 ? delay_ms - cwist_jq__random() % (spread + 1) : delay_ms;
}
