/* Batches of claimed jobs on their way to their end. */
#ifndef CWIST_JQ_SETTLE_H
#define CWIST_JQ_SETTLE_H

#include "core/internal.h"

/* Jobs of a caller's batch, and the place of each in it. Start with count 0. */
typedef struct cwist_jq__batch {
    size_t count;
    cwist_jq__job *jobs[CWIST_JOB_BATCH_MAX]; /* counted in the batch that took them */
    uint16_t places[CWIST_JOB_BATCH_MAX];
} cwist_jq__batch;

/*
 * Consumes handles and keeps the jobs behind them that may be settled through the queue. Fills in
 * codes, and notes the first handle that leads to none.
 */
void cwist_jq__batch_take(cwist_jq__batch *batch, const cwist_jq__queue *queue,
                          cwist_job_t *const *handles, size_t count, int *codes,
                          cwist_jq__failure *failure);
/* Consumes handles that nothing can be done for; each gets the code. */
void cwist_jq__batch_waste(cwist_job_t *const *handles, size_t count, int *codes, int code);
/*
 * Puts the codes of the batch's jobs in their places. `status` is the first that is not SUCCESS; it
 * is noted with the thread's text.
 */
void cwist_jq__batch_spread(const cwist_jq__batch *batch, const int *codes, int status, int *all,
                            cwist_jq__failure *failure);
/* Gives the jobs back. */
void cwist_jq__batch_drop(cwist_jq__batch *batch);

/* INVALID_PARAM unless the job was claimed through this queue. */
int cwist_jq__check_owner(const cwist_jq__queue *queue, const cwist_jq__job *job);
/* INVALID_PARAM unless count items can be a batch. `what` names the array. */
int cwist_jq__check_count(size_t count, const void *items, const char *what);
/* Sets the text of a failure again, naming the item when there are several; returns the code. */
int cwist_jq__tell_item(const cwist_jq__failure *failure, const char *what, size_t count);

#endif
