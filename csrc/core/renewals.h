/* The leases that the library keeps for its callers. */
#ifndef CWIST_JQ_RENEWALS_H
#define CWIST_JQ_RENEWALS_H

#include "core/internal.h"

/* Keeps the leases of jobs of one queue from now on. NOMEM: no thread can be had for it. */
int cwist_jq__keep(cwist_jq__queue *queue, cwist_jq__job *const *jobs,
                   size_t count) CWIST_JQ_MUST_USE;

/*
 * Keeps the lease of a job no more: its handle was consumed. `quiet` waits, not for long, until no
 * extension of it is under way: one that arrives behind a nack would change its delay.
 */
void cwist_jq__keep_no_more(cwist_jq__job *job, bool quiet);

/* Keeps no lease of the queue any more. */
void cwist_jq__keep_none(cwist_jq__queue *queue);

#endif
