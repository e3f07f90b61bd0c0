/* The worker's step: ack what is done and claim what is next, in one round trip. */
#include "core/api.h"
#include "core/backend.h"
#include "core/claim.h"
#include "core/queue.h"
#include "core/settle.h"

/* Acks the batch; with a claim, in the same round trip as a poll for its first jobs. */
static int ack_and_poll(cwist_jq__queue *queue, cwist_jq__claim *claim,
                        const cwist_jq__batch *batch, int *all, cwist_jq__job **next, size_t *got)
{
    const cwist_jq__ops *ops = queue->conn->ops;
    uint64_t deadline = cwist_jq__operation_deadline(queue);
    int codes[CWIST_JOB_BATCH_MAX];
    cwist_jq__failure told; /* by the acks: their codes say enough */
    int status = CWIST_SUCCESS;

    if (batch->count == 0) {
        return CWIST_SUCCESS;
    }
    if (claim != NULL) {
        status = ops->ack_and_poll(claim, batch->jobs, batch->count, codes, deadline, next, got);
    } else {
        (void)ops->ack(queue, batch->jobs, batch->count, deadline, codes);
    }
    told.code = CWIST_SUCCESS;
    cwist_jq__batch_spread(batch, codes, CWIST_SUCCESS, all, &told);
    return status == CWIST_SUCCESS && *got != 0 ? cwist_jq__claim_sift(claim, next, got) : status;
}

/* Acks, then claims into next. */
static int run(cwist_jq__queue *queue, cwist_jq__claim *claim, const cwist_jq__batch *batch,
               int *all, cwist_jq__job **next, size_t *got)
{
    int status = ack_and_poll(queue, claim, batch, all, next, got);

    while (status == CWIST_JQ_PENDING || (status == CWIST_SUCCESS && *got == 0)) {
        status = cwist_jq__claim_jobs(claim, CWIST_JQ_NEVER, next, got);
    }
    return status;
}

/* What the arguments must be; after that every handle is consumed. */
static int check_arguments(cwist_job_t *const *jobs, size_t count, const int *codes, size_t most,
                           cwist_job_t *const *next, const size_t *next_count)
{
    int status = cwist_jq__claim_check_room(most, next, next_count);

    if (status == CWIST_SUCCESS && count != 0) {
        status = cwist_jq__check_count(count, jobs, "jobs");
    }
    if (status == CWIST_SUCCESS && count != 0 && codes == NULL) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "codes is NULL");
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__error_prefix("ack_and_claim: ");
    }
    return status;
}

/* The acks are made even when no claim can be; only that failure is told then. */
static int run_batch(cwist_jq__queue *queue, const cwist_jq__batch *batch, int *codes, size_t most,
                     uint64_t timeout_ms, cwist_job_t **next, size_t *next_count)
{
    cwist_jq__job *jobs[CWIST_JOB_BATCH_MAX];
    cwist_jq__claim *claim = NULL;
    cwist_jq__failure failure = {0};
    size_t got = 0;
    int status = cwist_jq__claim_new(&claim, queue, most, timeout_ms);

    if (status == CWIST_SUCCESS) {
        status = run(queue, claim, batch, codes, jobs, &got);
    } else {
        cwist_jq__failure_note(&failure, 0, status);
        (void)ack_and_poll(queue, NULL, batch, codes, jobs, &got);
        status = cwist_jq__failure_tell(&failure);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__claim_publish(queue, jobs, got, next, next_count);
    }
    cwist_jq__claim_drop(claim, status);
    return status;
}

cwist_error_t cwist_job_queue_ack_and_claim(cwist_job_queue_t *handle, cwist_job_t *const *jobs,
                                            size_t count, int *codes, size_t most,
                                            uint64_t timeout_ms, cwist_job_t **next,
                                            size_t *next_count)
{
    cwist_jq__queue *queue = NULL;
    cwist_jq__failure failure; /* of handles: their codes say enough */
    cwist_jq__batch batch;

    if (next_count != NULL) {
        *next_count = 0;
    }
    int status = check_arguments(jobs, count, codes, most, next, next_count);
    if (status != CWIST_SUCCESS) {
        return cwist_jq__result(status);
    }
    status = cwist_jq__begin(&queue, handle, "ack_and_claim");
    failure.code = CWIST_SUCCESS;
    if (status != CWIST_SUCCESS) {
        cwist_jq__failure_note(&failure, 0, status);
        cwist_jq__batch_waste(jobs, count, codes, status);
        return cwist_jq__result(cwist_jq__failure_tell(&failure));
    }
    batch.count = 0;
    cwist_jq__batch_take(&batch, queue, jobs, count, codes, &failure);
    status = run_batch(queue, &batch, codes, most, timeout_ms, next, next_count);
    cwist_jq__batch_drop(&batch);
    return cwist_jq__end(queue, "ack_and_claim", status);
}
