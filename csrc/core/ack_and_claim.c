/* The worker's step: ack what is done and claim what is next, in one round trip. */
#include "core/api.h"
#include "core/backend.h"
#include "core/claim.h"
#include "core/queue.h"
#include "core/settle.h"

/* Acks a piece; with a claim, in the same round trip as a poll for its jobs. */
static int ack_piece(cwist_jq__queue *queue, cwist_jq__claim *claim, const cwist_jq__piece *piece,
                     uint64_t deadline, int *all)
{
    const cwist_jq__ops *ops = queue->conn->ops;
    int codes[CWIST_JQ_PIECE];
    int status = CWIST_SUCCESS;

    if (piece->count == 0) {
        return CWIST_SUCCESS;
    }
    if (claim != NULL) {
        status = ops->ack_and_poll(claim, piece->jobs, piece->count, codes, deadline, claim->jobs,
                                   &claim->count);
    } else {
        (void)ops->ack(queue, piece->jobs, piece->count, deadline, codes);
    }
    cwist_jq__count_done(&queue->counters.acked, codes, piece->count);
    cwist_jq__piece_spread(piece, codes, CWIST_SUCCESS, all, NULL);
    return status;
}

/* Acks all; the last piece takes the claim's poll along. */
static int ack_all(cwist_jq__queue *queue, cwist_jq__claim *claim, cwist_job_t *const *jobs,
                   size_t count, int *codes)
{
    cwist_jq__failure failure; /* of a handle: its code says enough */
    cwist_jq__piece piece;
    size_t next = 0;
    uint64_t deadline = cwist_jq__operation_deadline(queue);
    int status = CWIST_SUCCESS;

    failure.code = CWIST_SUCCESS;
    while (cwist_jq__piece_take(&piece, queue, jobs, count, &next, codes, &failure)) {
        status = ack_piece(queue, next == count ? claim : NULL, &piece, deadline, codes);
        cwist_jq__piece_drop(&piece);
    }
    return status;
}

/* Acks, then waits for the claim. */
static int run(cwist_jq__claim *claim, cwist_job_t *const *jobs, size_t count, int *codes)
{
    int status = ack_all(claim->queue, claim, jobs, count, codes);

    if (status == CWIST_SUCCESS && claim->count != 0) {
        status = cwist_jq__claim_sift(claim);
    }
    while (status == CWIST_JQ_PENDING || (status == CWIST_SUCCESS && claim->count == 0)) {
        status = cwist_jq__claim_jobs(claim, CWIST_JQ_NEVER);
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

/* Runs with checked arguments. The acks are made even when no claim can be. */
static int ack_then_claim(cwist_jq__queue *queue, cwist_job_t *const *jobs, size_t count,
                          int *codes, size_t most, uint64_t timeout_ms, cwist_job_t **next,
                          size_t *next_count)
{
    cwist_jq__claim *claim = NULL;
    int status = cwist_jq__claim_new(&claim, queue, most, timeout_ms);

    if (status == CWIST_SUCCESS) {
        status = run(claim, jobs, count, codes);
    } else {
        cwist_jq__failure failure = {0};
        cwist_jq__failure_note(&failure, 0, status);
        (void)ack_all(queue, NULL, jobs, count, codes);
        status = cwist_jq__failure_tell(&failure);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__claim_publish(claim, next, next_count);
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

    if (next_count != NULL) {
        *next_count = 0;
    }
    int status = check_arguments(jobs, count, codes, most, next, next_count);
    if (status != CWIST_SUCCESS) {
        return cwist_jq__result(status);
    }
    status = cwist_jq__begin(&queue, handle, "ack_and_claim");
    if (status == CWIST_SUCCESS) {
        status = ack_then_claim(queue, jobs, count, codes, most, timeout_ms, next, next_count);
    } else {
        cwist_jq__failure failure = {0};
        cwist_jq__failure_note(&failure, 0, status);
        cwist_jq__waste_handles(jobs, count, codes, status);
        status = cwist_jq__failure_tell(&failure);
    }
    return cwist_jq__end(queue, "ack_and_claim", status);
}
