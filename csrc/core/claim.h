/* What a plain claim and one that acks on the way share. */
#ifndef CWIST_JQ_CLAIM_H
#define CWIST_JQ_CLAIM_H

#include "core/internal.h"

/* INVALID_PARAM unless a claim may bring `most` jobs to the places of the caller. */
int cwist_jq__claim_check_room(size_t most, cwist_job_t *const *handles, const size_t *count);

/* Makes a claim that owns a reference of the queue; give it back with cwist_jq__unref(). */
int cwist_jq__claim_new(cwist_jq__claim **claim, cwist_jq__queue *queue, size_t most,
                        uint64_t timeout_ms);

/*
 * Keeps of the jobs that came those that a worker may have, in their order. The others become dead
 * letters. When the claim was given up meanwhile none is kept, and the result says so.
 */
int cwist_jq__claim_sift(cwist_jq__claim *claim);

/* Waits for jobs that a worker may have, one at least. PENDING when `until` came first. */
int cwist_jq__claim_jobs(cwist_jq__claim *claim, uint64_t until);

/* Gives the caller handles of the jobs. Those for which there is no memory are handed back. */
int cwist_jq__claim_publish(cwist_jq__claim *claim, cwist_job_t **handles, size_t *count);

/* Ends the claim; the thread's error text stays that of `status`. */
void cwist_jq__claim_drop(cwist_jq__claim *claim, int status);

#endif
