/*
 * Claims. The backend waits for one delivery; the core looks whether a worker may have it: a
 * malformed job and one that spent its deliveries go to the dead letters instead, and the claim
 * goes on.
 */
#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"
#include "platform/clock.h"

int cwist_jq__claim_check(const cwist_jq__claim *claim)
{
    if (atomic_load(&claim->queue->closed)) {
        return cwist_jq__fail(CWIST_ERROR_CLOSED, "the queue was closed during the claim");
    }
    if (atomic_load(&claim->queue->interrupts) != claim->interrupts) {
        return cwist_jq__fail(CWIST_ERROR_INTERRUPTED, "the claim was interrupted");
    }
    return CWIST_SUCCESS;
}

int cwist_jq__claim_pause(const cwist_jq__claim *claim, uint64_t until)
{
    int status = cwist_jq__claim_check(claim);

    while (status == CWIST_SUCCESS && !cwist_jq__passed(until)) {
        cwist_jq__sleep_until(cwist_jq__earlier(until, cwist_jq__after_ms(CWIST_JQ_SLICE_MS)));
        status = cwist_jq__claim_check(claim);
    }
    return status;
}

void cwist_jq__hand_back(cwist_jq__queue *queue, cwist_jq__job *job)
{
    int status = queue->conn->ops->release(queue, job, cwist_jq__operation_deadline(queue));

    if (status != CWIST_SUCCESS && status != CWIST_ERROR_LEASE_LOST) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: job %s arrived too late to be claimed and could not be released; "
                      "it comes back after the visibility timeout: %s",
                      queue->name, job->id, cwist_jq__error_text());
    }
    cwist_jq__unref(job);
}

/* Moves a delivery that no worker may have to the dead letters. A failure leaves it claimed. */
static void bury(cwist_jq__queue *queue, cwist_jq__job *job)
{
    cwist_jq__cause cause = CWIST_JQ_CAUSE_MALFORMED;

    if (job->malformed == NULL) {
        cause = CWIST_JQ_CAUSE_LEASE_EXPIRED;
        job->attempts--; /* this delivery reached no worker */
    }
    int status = queue->conn->ops->bury(queue, job, cause, job->malformed,
                                        cwist_jq__operation_deadline(queue));
    if (status == CWIST_SUCCESS) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: job %s is dead after %u deliveries (%s%s%s)", queue->name, job->id,
                      job->attempts, cwist_jq__cause_name(cause),
                      job->malformed != NULL ? ": " : "",
                      job->malformed != NULL ? job->malformed : "");
    } else if (status != CWIST_ERROR_LEASE_LOST) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: job %s should be a dead letter and could not be moved; it stays "
                      "claimed and is tried again after the visibility timeout: %s",
                      queue->name, job->id, cwist_jq__error_text());
    }
}

static void claim_finish(void *object)
{
    cwist_jq__claim *claim = object;

    if (claim->impl != NULL) {
        claim->queue->conn->ops->claim_end(claim);
    }
    cwist_jq__unref(claim->queue);
    cwist_jq__free(claim);
}

/* Makes a claim that owns a reference of the queue. */
static int make_claim(cwist_jq__claim **out, cwist_jq__queue *queue, uint64_t timeout_ms)
{
    cwist_jq__claim *claim = cwist_jq__calloc(1, sizeof *claim);

    *out = NULL;
    if (claim == NULL) {
        return cwist_jq__no_memory();
    }
    cwist_jq__object_init(claim, CWIST_JQ_KIND_CLAIM, claim_finish);
    cwist_jq__ref(queue);
    claim->queue = queue;
    claim->deadline = timeout_ms == UINT64_MAX ? CWIST_JQ_NEVER : cwist_jq__after_ms(timeout_ms);
    claim->interrupts = atomic_load(&queue->interrupts);

    int status = queue->conn->ops->claim_start(claim);
    if (status != CWIST_SUCCESS) {
        cwist_jq__unref(claim);
        return status;
    }
    *out = claim;
    return CWIST_SUCCESS;
}

/* One job that a worker may have. PENDING when `until` came first. */
static int wait_for_job(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **out)
{
    cwist_jq__queue *queue = claim->queue;
    /* Even a poll clears many dead jobs out of the way, but not for ever. */
    uint64_t burying_ends = cwist_jq__add_ms(claim->deadline, queue->conn->operation_timeout_ms);

    for (;;) {
        cwist_jq__job *job = NULL;
        int status = cwist_jq__claim_check(claim);
        if (status == CWIST_SUCCESS) {
            status = queue->conn->ops->claim_wait(claim, until, &job);
        }
        if (status != CWIST_SUCCESS) {
            claim->ended = status != CWIST_JQ_PENDING;
            return status;
        }
        if (cwist_jq__claim_check(claim) != CWIST_SUCCESS) { /* given up: nobody would settle it */
            cwist_jq__hand_back(queue, job);
            claim->ended = true;
            return cwist_jq__claim_check(claim);
        }
        if (job->malformed == NULL && job->attempts <= queue->max_retries) {
            *out = job;
            return CWIST_SUCCESS;
        }
        bury(queue, job);
        cwist_jq__unref(job);
        if (cwist_jq__passed(burying_ends)) {
            claim->ended = true;
            return cwist_jq__fail(CWIST_ERROR_TIMEOUT, "no job came, only dead ones");
        }
    }
}

/* Gives the caller a handle of the job, or hands the job back when that fails. */
static int publish_job(cwist_jq__queue *queue, cwist_jq__job *job, cwist_job_t **handle)
{
    *handle = cwist_jq__handle_new(job);
    if (*handle == NULL) {
        cwist_jq__hand_back(queue, job);
        return cwist_jq__no_memory();
    }
    return CWIST_SUCCESS;
}

cwist_error_t cwist_job_queue_claim(cwist_job_queue_t *handle, uint64_t timeout_ms,
                                    cwist_job_t **job_handle)
{
    cwist_jq__queue *queue = NULL;
    cwist_jq__claim *claim = NULL;
    cwist_jq__job *job = NULL;

    if (job_handle != NULL) {
        *job_handle = NULL;
    }
    int status = cwist_jq__begin(&queue, handle, "claim");
    if (status == CWIST_SUCCESS && job_handle == NULL) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "job is NULL");
    }
    if (status == CWIST_SUCCESS) {
        status = make_claim(&claim, queue, timeout_ms);
    }
    if (status == CWIST_SUCCESS) {
        do {
            status = wait_for_job(claim, CWIST_JQ_NEVER, &job);
        } while (status == CWIST_JQ_PENDING);
    }
    if (status == CWIST_SUCCESS) {
        status = publish_job(queue, job, job_handle);
    }
    cwist_error_t result = cwist_jq__end(queue, "claim", status);
    /* Calling back what is under way may fail too; the text is to tell why the claim ended. */
    char *text = status != CWIST_SUCCESS ? cwist_jq__strdup(cwist_jq__error_text()) : NULL;
    cwist_jq__unref(claim);
    if (text != NULL) {
        (void)cwist_jq__fail(status, "%s", text);
    }
    cwist_jq__free(text);
    return result;
}

/* ---- claims in slices ---- */

cwist_error_t cwist_job_claim_start(cwist_job_claim_t **claim_handle, cwist_job_queue_t *handle,
                                    uint64_t timeout_ms)
{
    cwist_jq__queue *queue = NULL;
    cwist_jq__claim *claim = NULL;

    if (claim_handle != NULL) {
        *claim_handle = NULL;
    }
    int status = cwist_jq__begin(&queue, handle, "claim");
    if (status == CWIST_SUCCESS && claim_handle == NULL) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "claim is NULL");
    }
    if (status == CWIST_SUCCESS) {
        status = make_claim(&claim, queue, timeout_ms);
    }
    if (status == CWIST_SUCCESS) {
        *claim_handle = cwist_jq__handle_new(claim);
        if (*claim_handle == NULL) {
            cwist_jq__unref(claim);
            status = cwist_jq__no_memory();
        }
    }
    return cwist_jq__end(queue, "claim", status);
}

cwist_error_t cwist_job_claim_wait(cwist_job_claim_t *handle, uint64_t slice_ms,
                                   cwist_job_t **job_handle)
{
    void *object = NULL;
    cwist_jq__queue *queue = NULL;
    cwist_jq__job *job = NULL;
    int status = cwist_jq__handle_get(&object, handle, CWIST_JQ_KIND_CLAIM, "claim");
    cwist_jq__claim *claim = object;

    if (status == CWIST_SUCCESS) {
        queue = claim->queue;
        cwist_jq__ref(queue);
        status = job_handle == NULL ? cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "job is NULL")
                 : claim->ended     ? cwist_jq__fail(CWIST_ERROR_CLOSED, "the claim has ended")
                                    : CWIST_SUCCESS;
    }
    if (job_handle != NULL) {
        *job_handle = NULL;
    }
    if (status == CWIST_SUCCESS) {
        status = wait_for_job(claim, cwist_jq__after_ms(slice_ms), &job);
    }
    if (status == CWIST_JQ_PENDING) {
        status = CWIST_SUCCESS;
    } else if (status == CWIST_SUCCESS) {
        claim->ended = true;
        status = publish_job(queue, job, job_handle);
    }
    cwist_jq__unref(claim);
    return cwist_jq__end(queue, "claim", status);
}

void cwist_job_claim_end(cwist_job_claim_t *handle)
{
    void *claim = NULL;
    if (handle != NULL &&
        cwist_jq__handle_take(&claim, handle, CWIST_JQ_KIND_CLAIM, "claim") == CWIST_SUCCESS) {
        cwist_jq__unref(claim);
    }
}
