/* Condition variables of POSIX on the monotonic clock. One that fails is a broken program. */
#if defined(__APPLE__)
#define _DARWIN_C_SOURCE /* the wait for a span of time is no part of POSIX */
#endif

#include "platform/condition.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "platform/clock.h"

#define SECOND UINT64_C(1000000000)
#define LONGEST (3600 * SECOND) /* no system takes every number of seconds */

static void must(int result)
{
    if (result != 0) {
        abort();
    }
}

void cwist_jq__condition_init(cwist_jq__condition *condition)
{
#if defined(__APPLE__)
    must(pthread_cond_init(condition, NULL));
#else
    pthread_condattr_t attributes;

    must(pthread_condattr_init(&attributes));
    must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    must(pthread_cond_init(condition, &attributes));
    must(pthread_condattr_destroy(&attributes));
#endif
}

void cwist_jq__condition_destroy(cwist_jq__condition *condition)
{
    must(pthread_cond_destroy(condition));
}

void cwist_jq__condition_wait(cwist_jq__condition *condition, cwist_jq__mutex *mutex,
                              uint64_t until)
{
    uint64_t now = cwist_jq__now();

    if (until <= now) {
        return;
    }
    uint64_t span = until - now < LONGEST ? until - now : LONGEST;
#if defined(__APPLE__)
    struct timespec time = {(time_t)(span / SECOND), (long)(span % SECOND)};
    int result = pthread_cond_timedwait_relative_np(condition, mutex, &time);
#else
    struct timespec time = {(time_t)((now + span) / SECOND), (long)((now + span) % SECOND)};
    int result = pthread_cond_timedwait(condition, mutex, &time);
#endif
    if (result != ETIMEDOUT) {
        must(result);
    }
}

void cwist_jq__condition_wake_one(cwist_jq__condition *condition)
{
    must(pthread_cond_signal(condition));
}

void cwist_jq__condition_wake_all(cwist_jq__condition *condition)
{
    must(pthread_cond_broadcast(condition));
}
