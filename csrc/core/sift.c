/*
 * Whether a worker may have what a claim brought: a malformed job and one that spent its deliveries
 * go to the dead letters instead.
 */
#include "core/backend.h"
#include "core/claim.h"
#include "core/queue.h"

static cwist_jq__cause cause_of(const cwist_jq__job *job)
{
    return job->malformed != NULL ? CWIST_JQ_CAUSE_MALFORMED : CWIST_JQ_CAUSE_LEASE_EXPIRED;
}

static void log_burial(cwist_jq__queue *queue, const cwist_jq__job *job, int code)
{
    if (code == CWIST_SUCCESS) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: job %s is dead after %u deliveries (%s%s%s)", queue->name, job->id,
                      job->attempts, cwist_jq__cause_name(cause_of(job)),
                      job->malformed != NULL ? ": " : "",
                      job->malformed != NULL ? job->malformed : "");
    } else if (code != CWIST_ERROR_LEASE_LOST) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: job %s should be a dead letter and could not be moved; it stays "
                      "claimed and is tried again after the visibility timeout: %s",
                      queue->name, job->id, cwist_jq__error_text());
    }
}

/* Moves jobs that are dead for one cause, a piece at most. A failure leaves them claimed. */
static void bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                 uint64_t deadline)
{
    int codes[CWIST_JQ_PIECE];

    (void)queue->conn->ops->bury(queue, jobs, count, cause_of(jobs[0]), jobs[0]->malformed,
                                 deadline, codes);
    for (size_t i = 0; i < count; i++) {
        log_burial(queue, jobs[i], codes[i]);
        cwist_jq__unref(jobs[i]);
    }
}

static bool is_dead(const cwist_jq__queue *queue, const cwist_jq__job *job)
{
    return job->malformed != NULL || job->attempts > queue->max_retries;
}

/* How many jobs from the first on are dead for the same cause as it, a piece at most. */
static size_t count_alike(const cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count)
{
    size_t alike = 1;

    while (alike < count && alike < CWIST_JQ_PIECE && is_dead(queue, jobs[alike]) &&
           jobs[alike]->malformed == jobs[0]->malformed) {
        alike++;
    }
    return alike;
}

int cwist_jq__claim_sift(cwist_jq__claim *claim)
{
    cwist_jq__queue *queue = claim->queue;
    size_t came = claim->count;

    claim->count = 0;
    if (cwist_jq__claim_check(claim) != CWIST_SUCCESS) { /* given up: nobody would settle them */
        cwist_jq__hand_back(queue, claim->jobs, came);
        claim->ended = true;
        return cwist_jq__claim_check(claim);
    }
    uint64_t deadline = cwist_jq__operation_deadline(queue);
    for (size_t i = 0; i < came;) {
        cwist_jq__job **jobs = claim->jobs + i;
        if (!is_dead(queue, jobs[0])) {
            claim->jobs[claim->count++] = jobs[0];
            i++;
            continue;
        }
        size_t alike = count_alike(queue, jobs, came - i);
        for (size_t at = 0; at < alike; at++) {
            jobs[at]->attempts -= jobs[at]->malformed == NULL; /* this one reached no worker */
        }
        bury(queue, jobs, alike, deadline);
        i += alike;
    }
    return CWIST_SUCCESS;
}
