/*
 * Whether a worker may have what a claim brought: a malformed job and one that spent its deliveries
 * go to the dead letters instead.
 */
#include "core/backend.h"
#include "core/claim.h"
#include "core/queue.h"
#include "core/settle.h"

/* Moves jobs that are dead for one cause, a piece at most. A failure leaves them claimed. */
static void bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                 uint64_t deadline)
{
    int codes[CWIST_JQ_PIECE];

    cwist_jq__cause cause =
        jobs[0]->malformed != NULL ? CWIST_JQ_CAUSE_MALFORMED : CWIST_JQ_CAUSE_LEASE_EXPIRED;

    int status =
        queue->conn->ops->bury(queue, jobs, count, cause, jobs[0]->malformed, deadline, codes);
    if (status != CWIST_SUCCESS && status != CWIST_ERROR_LEASE_LOST) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: job %s%s should be a dead letter and could not be moved; it stays "
                      "claimed and is tried again after the visibility timeout: %s",
                      queue->name, jobs[0]->id, count > 1 ? ", or one claimed with it," : "",
                      cwist_jq__error_text());
    }
    cwist_jq__count_done(&queue->counters.buried, codes, count);
    cwist_jq__log_dead(queue, CWIST_JOB_LOG_WARNING, cause, jobs, count, codes);
    for (size_t i = 0; i < count; i++) {
        cwist_jq__unref(jobs[i]);
    }
}

static bool may_run(const cwist_jq__queue *queue, const cwist_jq__job *job)
{
    return job->malformed == NULL && job->attempts <= queue->max_retries;
}

static bool is_spent(const cwist_jq__queue *queue, const cwist_jq__job *job)
{
    (void)queue;
    return job->malformed == NULL;
}

/* Moves the jobs of a kind to the front, in their order. Returns how many they are. */
static size_t bring_forward(const cwist_jq__queue *queue, cwist_jq__job **jobs, size_t count,
                            bool (*of_kind)(const cwist_jq__queue *queue, const cwist_jq__job *job))
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        if (of_kind(queue, jobs[i])) {
            cwist_jq__job *job = jobs[i];
            jobs[i] = jobs[found];
            jobs[found++] = job;
        }
    }
    return found;
}

/* How many jobs from the first on are dead for the same cause as it, a piece at most. */
static size_t count_alike(cwist_jq__job *const *jobs, size_t count)
{
    size_t alike = 1;

    while (alike < count && alike < CWIST_JQ_PIECE &&
           jobs[alike]->malformed == jobs[0]->malformed) {
        alike++;
    }
    return alike;
}

static void bury_all(cwist_jq__queue *queue, cwist_jq__job **jobs, size_t count)
{
    uint64_t deadline = cwist_jq__operation_deadline(queue);
    size_t spent = bring_forward(queue, jobs, count, is_spent);

    for (size_t i = 0; i < spent; i++) {
        jobs[i]->attempts--; /* this delivery reached no worker */
    }
    for (size_t done = 0; done < count;) {
        size_t alike = count_alike(jobs + done, count - done);
        bury(queue, jobs + done, alike, deadline);
        done += alike;
    }
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
    claim->count = bring_forward(queue, claim->jobs, came, may_run);
    if (claim->count < came) {
        bury_all(queue, claim->jobs + claim->count, came - claim->count);
    }
    return CWIST_SUCCESS;
}
