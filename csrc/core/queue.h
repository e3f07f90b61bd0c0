/* How every public operation on a queue begins and ends. */
#ifndef CWIST_JQ_QUEUE_H
#define CWIST_JQ_QUEUE_H

#include "core/internal.h"

/* Takes a reference of the queue behind a handle, or says why there is none. */
int cwist_jq__begin(cwist_jq__queue **queue, const cwist_job_queue_t *handle,
                    const char *operation) CWIST_JQ_MUST_USE;

/* Gives the reference back and makes the public result; names operation, queue and server. */
cwist_error_t cwist_jq__end(cwist_jq__queue *queue, const char *operation, int status);

/* The moment at which a call other than claim gives up. */
uint64_t cwist_jq__operation_deadline(const cwist_jq__queue *queue);

#endif
