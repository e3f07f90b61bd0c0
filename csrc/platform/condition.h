/* Waiting for what another thread does. */
#ifndef CWIST_JQ_CONDITION_H
#define CWIST_JQ_CONDITION_H

#include <stdint.h>

#include "platform/thread.h"

#if defined(_WIN32)
/* A CONDITION_VARIABLE, without the header that declares it and a thousand other names. */
typedef struct cwist_jq__condition {
    void *state;
} cwist_jq__condition;
#else
typedef pthread_cond_t cwist_jq__condition;
#endif

void cwist_jq__condition_init(cwist_jq__condition *condition);
void cwist_jq__condition_destroy(cwist_jq__condition *condition);

/*
 * Gives the mutex back, waits for a wake-up or for the moment `until` of cwist_jq__now(), and takes
 * the mutex again. It may also return early for no reason: look again at what is waited for.
 */
void cwist_jq__condition_wait(cwist_jq__condition *condition, cwist_jq__mutex *mutex,
                              uint64_t until);
void cwist_jq__condition_wake_one(cwist_jq__condition *condition);
void cwist_jq__condition_wake_all(cwist_jq__condition *condition);

#endif
