/* The clocks of POSIX. */
#include <errno.h>
#include <time.h>

#include "platform/clock.h"

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)

uint64_t cwist_jq__now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

uint64_t cwist_jq__wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / MS;
}

void cwist_jq__sleep_until(uint64_t when)
{
    for (uint64_t now = cwist_jq__now(); now < when; now = cwist_jq__now()) {
        uint64_t left = when - now;
        struct timespec wait = {(time_t)(left / SECOND), (long)(left % SECOND)};
        (void)nanosleep(&wait, NULL); /* a signal ends it early; the loop goes on */
    }
}
