/* Deadlines: moments of the monotonic clock that saturate at "never". */
#include "core/internal.h"
#include "platform/clock.h"

uint64_t cwist_jq__add_ms(uint64_t when, uint64_t ms)
{
    return ms > (CWIST_JQ_NEVER - when) / CWIST_JQ_MS ? CWIST_JQ_NEVER : when + ms * CWIST_JQ_MS;
}

uint64_t cwist_jq__after_ms(uint64_t ms)
{
    return cwist_jq__add_ms(cwist_jq__now(), ms);
}

uint64_t cwist_jq__earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t cwist_jq__share_of_time(uint64_t deadline, unsigned tries)
{
    uint64_t now = cwist_jq__now();

    return tries > 1 && deadline > now ? now + (deadline - now) / tries : deadline;
}

bool cwist_jq__passed(uint64_t deadline)
{
    return deadline != CWIST_JQ_NEVER && cwist_jq__now() >= deadline;
}

uint64_t cwist_jq__ms_left(uint64_t deadline)
{
    if (deadline == CWIST_JQ_NEVER) {
        return UINT64_MAX;
    }
    uint64_t now = cwist_jq__now();
    return now >= deadline ? 0 : (deadline - now + CWIST_JQ_MS - 1) / CWIST_JQ_MS;
}
