/* Locks of POSIX threads. A lock that fails is a broken program, so it ends at once. */
#include <stdlib.h>

#include "platform/thread.h"

static void must(int result)
{
    if (result != 0) {
        abort();
    }
}

void cwist_jq__mutex_init(cwist_jq__mutex *mutex)
{
    must(pthread_mutex_init(mutex, NULL));
}

void cwist_jq__mutex_destroy(cwist_jq__mutex *mutex)
{
    must(pthread_mutex_destroy(mutex));
}

void cwist_jq__lock(cwist_jq__mutex *mutex)
{
    must(pthread_mutex_lock(mutex));
}

void cwist_jq__unlock(cwist_jq__mutex *mutex)
{
    must(pthread_mutex_unlock(mutex));
}
