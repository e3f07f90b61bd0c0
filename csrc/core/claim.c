/*
 * Claims. The backend waits for deliveries; what no worker may have is sifted out, and the claim
 * goes on.
 */
#include "core/claim.h"
#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"
#include "core/renewals.h"
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

static void hand_back_piece(cwist_jq__queue *queue, cwist_jq__job **jobs, size_t count,
                            uint64_t deadline)
{
    int codes[CWIST_JQ_PIECE];

    (void)queue->conn->ops->release(queue, jobs, count, 0, deadline, codes);
    for (size_t i = 0; i < count; i++) {
        if (codes[i] != CWIST_SUCCESS && codes[i] != CWIST_ERROR_LEASE_LOST) {
            cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                          "queue %s: job %s arrived too late to be claimed and could not be "
                          "released; it comes back after the visibility timeout: %s",
                          queue->name, jobs[i]->id, cwist_jq__error_text());
        }
        cwist_jq__unref(jobs[i]);
    }
}

void cwist_jq__hand_back(cwist_jq__queue *queue, cwist_jq__job **jobs, size_t count)
{
    uint64_t deadline = cwist_jq__operation_deadline(queue);

    for (size_t done = 0; done < count; done += CWIST_JQ_PIECE) {
        size_t left = count - done;
        hand_back_piece(queue, jobs + done, left < CWIST_JQ_PIECE ? left : CWIST_JQ_PIECE,
                        deadline);
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

static int check_most(size_t most)
{
    return most >= 1 && most <= CWIST_JOB_BATCH_MAX
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "most is %zu; allowed: 1 to %d", most,
                                CWIST_JOB_BATCH_MAX);
}

int cwist_jq__claim_check_room(size_t most, cwist_job_t *const *handles, const size_t *count)
{
    int status = check_most(most);

    if (status == CWIST_SUCCESS && (handles == NULL || count == NULL)) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s is NULL",
                                handles == NULL ? "jobs" : "count");
    }
    return status;
}

int cwist_jq__claim_new(cwist_jq__claim **out, cwist_jq__queue *queue, size_t most,
                        uint64_t timeout_ms)
{
    cwist_jq__claim *claim = cwist_jq__calloc(1, sizeof *claim + most * sizeof(cwist_jq__job *));

    *out = NULL;
    if (claim == NULL) {
        return cwist_jq__no_memory();
    }
    cwist_jq__object_init(claim, CWIST_JQ_KIND_CLAIM, claim_finish);
    cwist_jq__ref(queue);
    claim->queue = queue;
    claim->most = most;
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

int cwist_jq__claim_jobs(cwist_jq__claim *claim, uint64_t until)
{
    cwist_jq__queue *queue = claim->queue;
    /* Even a poll clears many dead jobs out of the way, but not for ever. */
    uint64_t burying_ends = cwist_jq__add_ms(claim->deadline, queue->conn->operation_timeout_ms);

    for (;;) {
        claim->count = 0;
        int status = cwist_jq__claim_check(claim);
        if (status == CWIST_SUCCESS) {
            status = queue->conn->ops->claim_wait(claim, until, claim->jobs, &claim->count);
        }
        if (status == CWIST_SUCCESS) {
            status = cwist_jq__claim_sift(claim);
        }
        if (status != CWIST_SUCCESS) {
            claim->ended = status != CWIST_JQ_PENDING;
            return status;
        }
        if (claim->count != 0) {
            return CWIST_SUCCESS;
        }
        if (cwist_jq__passed(burying_ends)) {
            claim->ended = true;
            return cwist_jq__fail(CWIST_ERROR_TIMEOUT, "no job came, only dead ones");
        }
    }
}

int cwist_jq__claim_publish(cwist_jq__claim *claim, cwist_job_t **handles, size_t *count)
{
    size_t done = 0;

    while (done < claim->count &&
           (handles[done] = cwist_jq__handle_new(claim->jobs[done])) != NULL) {
        done++;
    }
    *count = done;
    if (claim->queue->auto_renew && done != 0 &&
        cwist_jq__keep(claim->queue, claim->jobs, done) != CWIST_SUCCESS) {
        cwist_jq__log(claim->queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: the leases of claimed jobs are not renewed: %s",
                      claim->queue->name, cwist_jq__error_text());
    }
    atomic_fetch_add_explicit(&claim->queue->counters.delivered, done, memory_order_relaxed);
    cwist_jq__hand_back(claim->queue, claim->jobs + done, claim->count - done);
    return done != 0 ? CWIST_SUCCESS : cwist_jq__no_memory();
}

/* Calling back what is under way may fail too; the text is to tell why the claim ended. */
void cwist_jq__claim_drop(cwist_jq__claim *claim, int status)
{
    cwist_jq__failure failure = {0};

    if (status == CWIST_SUCCESS) {
        cwist_jq__unref(claim);
        return;
    }
    cwist_jq__failure_note(&failure, 0, status);
    cwist_jq__unref(claim);
    (void)cwist_jq__failure_tell(&failure);
}

/* ---- claims in one call ---- */

static cwist_error_t claim_up_to(cwist_job_queue_t *handle, size_t most, uint64_t timeout_ms,
                                 cwist_job_t **handles, size_t *count)
{
    cwist_jq__queue *queue = NULL;
    cwist_jq__claim *claim = NULL;
    int status = cwist_jq__begin(&queue, handle, "claim");

    if (count != NULL) {
        *count = 0;
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__claim_check_room(most, handles, count);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__claim_new(&claim, queue, most, timeout_ms);
    }
    if (status == CWIST_SUCCESS) {
        do {
            status = cwist_jq__claim_jobs(claim, CWIST_JQ_NEVER);
        } while (status == CWIST_JQ_PENDING);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__claim_publish(claim, handles, count);
    }
    cwist_error_t result = cwist_jq__end(queue, "claim", status);
    cwist_jq__claim_drop(claim, status);
    return result;
}

cwist_error_t cwist_job_queue_claim(cwist_job_queue_t *handle, uint64_t timeout_ms,
                                    cwist_job_t **job)
{
    size_t count = 0;

    if (job != NULL) {
        *job = NULL;
    }
    return claim_up_to(handle, 1, timeout_ms, job, &count);
}

cwist_error_t cwist_job_queue_claim_many(cwist_job_queue_t *handle, size_t most,
                                         uint64_t timeout_ms, cwist_job_t **jobs, size_t *count)
{
    return claim_up_to(handle, most, timeout_ms, jobs, count);
}

/* ---- claims in slices ---- */

cwist_error_t cwist_job_claim_start(cwist_job_claim_t **claim_handle, cwist_job_queue_t *handle,
                                    size_t most, uint64_t timeout_ms)
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
        status = check_most(most);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__claim_new(&claim, queue, most, timeout_ms);
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

/* Waits a slice on a claim that a handle led to. */
static int wait_slice(cwist_jq__claim *claim, uint64_t slice_ms, cwist_job_t **handles,
                      size_t *count)
{
    int status = cwist_jq__claim_check_room(claim->most, handles, count);

    if (status == CWIST_SUCCESS && claim->ended) {
        status = cwist_jq__fail(CWIST_ERROR_CLOSED, "the claim has ended");
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__claim_jobs(claim, cwist_jq__after_ms(slice_ms));
    }
    if (status == CWIST_JQ_PENDING) {
        return CWIST_SUCCESS;
    }
    if (status == CWIST_SUCCESS) {
        claim->ended = true;
        status = cwist_jq__claim_publish(claim, handles, count);
    }
    return status;
}

cwist_error_t cwist_job_claim_wait(cwist_job_claim_t *handle, uint64_t slice_ms, cwist_job_t **jobs,
                                   size_t *count)
{
    void *object = NULL;
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__handle_get(&object, handle, CWIST_JQ_KIND_CLAIM, "claim");
    cwist_jq__claim *claim = object;

    if (count != NULL) {
        *count = 0;
    }
    if (status == CWIST_SUCCESS) {
        queue = claim->queue;
        cwist_jq__ref(queue);
        status = wait_slice(claim, slice_ms, jobs, count);
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
