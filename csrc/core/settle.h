/* Batches of claimed jobs on their way to their end, a piece at a time. */
#ifndef CWIST_JQ_SETTLE_H
#define CWIST_JQ_SETTLE_H

#include "core/backend.h"

/* A piece of a caller's batch: jobs, and the place of each in the batch. Start with count 0. */
typedef struct cwist_jq__piece {
    size_t count;
    cwist_jq__job *jobs[CWIST_JQ_PIECE]; /* counted in the piece that took them */
    uint16_t places[CWIST_JQ_PIECE];
} cwist_jq__piece;

/*
 * Consumes the handles from *next on, a piece of them at most, and keeps the jobs that may be
 * settled through the queue. Fills in codes, notes the first handle that leads to none, and moves
 * *next on. False when none is left.
 */
bool cwist_jq__piece_take(cwist_jq__piece *piece, const cwist_jq__queue *queue,
                          cwist_job_t *const *handles, size_t count, size_t *next, int *codes,
                          cwist_jq__failure *failure);
/* Consumes handles that nothing can be done for; each gets the code. */
void cwist_jq__waste_handles(cwist_job_t *const *handles, size_t count, int *codes, int code);
/*
 * Puts the codes of the piece's jobs in their places. `status` is the first that is not SUCCESS; it
 * is noted with the thread's text.
 */
void cwist_jq__piece_spread(const cwist_jq__piece *piece, const int *codes, int status, int *all,
                            cwist_jq__failure *failure);
/* Gives the jobs back. */
void cwist_jq__piece_drop(cwist_jq__piece *piece);

/* Adds the successes among codes to a counter of the queue. */
void cwist_jq__count_done(_Atomic uint64_t *counter, const int *codes, size_t count);
/* Keeps on the job what an extension told: LEASE_LOST. */
void cwist_jq__note_lost(cwist_jq__job *job, int code);

/* INVALID_PARAM unless the job was claimed through this queue. */
int cwist_jq__check_owner(const cwist_jq__queue *queue, const cwist_jq__job *job);
/* INVALID_PARAM unless count items can be a batch. `what` names the array. */
int cwist_jq__check_count(size_t count, const void *items, const char *what);
/* Sets the text of a failure again, naming the item when there are several; returns the code. */
int cwist_jq__tell_item(const cwist_jq__failure *failure, const char *what, size_t count);

#endif
