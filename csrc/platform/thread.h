/* The few thread tools that the library needs. */
#ifndef CWIST_JQ_THREAD_H
#define CWIST_JQ_THREAD_H

#include <pthread.h>

typedef pthread_mutex_t cwist_jq__mutex;

#define CWIST_JQ_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

void cwist_jq__mutex_init(cwist_jq__mutex *mutex);
void cwist_jq__mutex_destroy(cwist_jq__mutex *mutex);
void cwist_jq__lock(cwist_jq__mutex *mutex);
void cwist_jq__unlock(cwist_jq__mutex *mutex);

#endif
