/* The few thread tools that the library needs. */
#ifndef CWIST_JQ_THREAD_H
#define CWIST_JQ_THREAD_H

#if defined(_WIN32)
/* An SRWLOCK, without the header that declares it and a thousand other names. */
typedef struct cwist_jq__mutex {
    void *state;
} cwist_jq__mutex;
#define CWIST_JQ_MUTEX_INIT                                                                        \
    {                                                                                              \
        0                                                                                          \
    }
#else
#include <pthread.h>
typedef pthread_mutex_t cwist_jq__mutex;
#define CWIST_JQ_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#endif

void cwist_jq__mutex_init(cwist_jq__mutex *mutex);
void cwist_jq__mutex_destroy(cwist_jq__mutex *mutex);
void cwist_jq__lock(cwist_jq__mutex *mutex);
void cwist_jq__unlock(cwist_jq__mutex *mutex);

#endif
