/* Condition variables over slim locks. They need no destroying. */
#include "platform/condition.h"

#include "platform/clock.h"
#include "platform/win/windows.h"

#define MS UINT64_C(1000000)
#define LONGEST_MS 3600000 /* below what the system takes for ever */

_Static_assert(sizeof(cwist_jq__condition) == sizeof(CONDITION_VARIABLE),
               "the header's condition is a CONDITION_VARIABLE");

static CONDITION_VARIABLE *variable_of(cwist_jq__condition *condition)
{
    return (CONDITION_VARIABLE *)(void *)condition;
}

void cwist_jq__condition_init(cwist_jq__condition *condition)
{
    InitializeConditionVariable(variable_of(condition));
}

void cwist_jq__condition_destroy(cwist_jq__condition *condition)
{
    (void)condition;
}

void cwist_jq__condition_wait(cwist_jq__condition *condition, cwist_jq__mutex *mutex,
                              uint64_t until)
{
    uint64_t now = cwist_jq__now();

    if (until <= now) {
        return;
    }
    uint64_t ms = (until - now + MS - 1) / MS;
    (void)SleepConditionVariableSRW(variable_of(condition), (SRWLOCK *)(void *)mutex,
                                    ms < LONGEST_MS ? (DWORD)ms : LONGEST_MS, 0);
}

void cwist_jq__condition_wake_one(cwist_jq__condition *condition)
{
    WakeConditionVariable(variable_of(condition));
}

void cwist_jq__condition_wake_all(cwist_jq__condition *condition)
{
    WakeAllConditionVariable(variable_of(condition));
}
