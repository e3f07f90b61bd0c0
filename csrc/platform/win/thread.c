/* Slim locks. They need no destroying, and taking one cannot fail. */
#include "platform/thread.h"

#include "platform/win/windows.h"

_Static_assert(sizeof(cwist_jq__mutex) == sizeof(SRWLOCK), "the header's lock is an SRWLOCK");

static SRWLOCK *lock_of(cwist_jq__mutex *mutex)
{
    return (SRWLOCK *)(void *)mutex;
}

void cwist_jq__mutex_init(cwist_jq__mutex *mutex)
{
    InitializeSRWLock(lock_of(mutex));
}

void cwist_jq__mutex_destroy(cwist_jq__mutex *mutex)
{
    (void)mutex;
}

void cwist_jq__lock(cwist_jq__mutex *mutex)
{
    AcquireSRWLockExclusive(lock_of(mutex));
}

void cwist_jq__unlock(cwist_jq__mutex *mutex)
{
    ReleaseSRWLockExclusive(lock_of(mutex));
}
