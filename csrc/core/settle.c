/* The ends of a claimed job: what becomes of it is decided here, for both engines. */
#include "core/settle.h"
#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"

/* ---- the endings ---- */

typedef int (*ending)(cwist_jq__queue *queue, const cwist_jq__piece *piece, const char *reason,
                      uint64_t deadline, int *codes);

static int end_ack(cwist_jq__queue *queue, const cwist_jq__piece *piece, const char *reason,
                   uint64_t deadline, int *codes)
{
    (void)reason;
    return queue->conn->ops->ack(queue, piece->jobs, piece->count, deadline, codes);
}

static int end_retry(cwist_jq__queue *queue, const cwist_jq__piece *piece, const char *reason,
                     uint64_t deadline, int *codes)
{
    (void)reason;
    return queue->conn->ops->retry(queue, piece->jobs, piece->count, queue->retry_delay_ms,
                                   deadline, codes);
}

static int end_dead(cwist_jq__queue *queue, const cwist_jq__piece *piece, const char *reason,
                    uint64_t deadline, int *codes)
{
    int status = queue->conn->ops->bury(queue, piece->jobs, piece->count, CWIST_JQ_CAUSE_NACKED,
                                        reason, deadline, codes);

    cwist_jq__log_dead(queue, CWIST_JOB_LOG_INFO, CWIST_JQ_CAUSE_NACKED, piece->jobs, piece->count,
                       codes);
    return status;
}

static int end_release(cwist_jq__queue *queue, const cwist_jq__piece *piece, const char *reason,
                       uint64_t deadline, int *codes)
{
    (void)reason;
    return queue->conn->ops->release(queue, piece->jobs, piece->count, deadline, codes);
}

/* What becomes of jobs; another end for those that had their last allowed delivery. */
typedef struct verdict {
    const char *operation;
    ending end;
    ending end_last; /* NULL: the same */
} verdict;

static const verdict to_ack = {"ack", end_ack, NULL};
static const verdict to_nack = {"nack", end_retry, end_dead};
static const verdict to_release = {"release", end_release, NULL};

/* ---- batches, a piece at a time ---- */

static void run(cwist_jq__queue *queue, const cwist_jq__piece *piece, ending end,
                const char *reason, uint64_t deadline, int *all, cwist_jq__failure *failure)
{
    int codes[CWIST_JQ_PIECE];

    if (piece->count != 0) {
        int status = end(queue, piece, reason, deadline, codes);
        cwist_jq__piece_spread(piece, codes, status, all, failure);
    }
}

/* Runs an ending for those jobs of a piece that had, or had not, their last allowed delivery. */
static void run_part(cwist_jq__queue *queue, const cwist_jq__piece *piece, bool last, ending end,
                     const char *reason, uint64_t deadline, int *all, cwist_jq__failure *failure)
{
    cwist_jq__piece part;

    part.count = 0;
    for (size_t i = 0; i < piece->count; i++) {
        if ((piece->jobs[i]->attempts >= queue->max_retries) == last) {
            part.places[part.count] = piece->places[i];
            part.jobs[part.count++] = piece->jobs[i];
        }
    }
    run(queue, &part, end, reason, deadline, all, failure);
}

/* The time is over: what is left of a batch from `next` on is not tried. */
static void leave(cwist_job_t *const *handles, size_t count, size_t next, int *all,
                  cwist_jq__failure *failure)
{
    int code = cwist_jq__fail(CWIST_ERROR_NOT_SENT, "the time was over before it could be sent");

    cwist_jq__failure_note(failure, next, code);
    cwist_jq__waste_handles(handles + next, count - next, all + next, code);
}

/* Consumes the handles whatever happens, then runs the ending. */
static cwist_error_t settle_batch(cwist_job_queue_t *queue_handle, cwist_job_t *const *handles,
                                  size_t count, int *all, const verdict *to, const char *reason)
{
    cwist_jq__queue *queue = NULL;
    cwist_jq__failure failure;
    cwist_jq__piece piece;
    size_t next = 0;
    int status = cwist_jq__begin(&queue, queue_handle, to->operation);

    failure.code = CWIST_SUCCESS;
    if (status != CWIST_SUCCESS) {
        cwist_jq__failure_note(&failure, 0, status);
        cwist_jq__waste_handles(handles, count, all, status);
        return cwist_jq__result(cwist_jq__failure_tell(&failure));
    }
    uint64_t deadline = cwist_jq__operation_deadline(queue);
    while (cwist_jq__piece_take(&piece, queue, handles, count, &next, all, &failure)) {
        if (to->end_last == NULL) {
            run(queue, &piece, to->end, reason, deadline, all, &failure);
        } else {
            run_part(queue, &piece, false, to->end, reason, deadline, all, &failure);
            run_part(queue, &piece, true, to->end_last, reason, deadline, all, &failure);
        }
        cwist_jq__piece_drop(&piece);
        if (next < count && cwist_jq__passed(deadline)) {
            leave(handles, count, next, all, &failure);
            break;
        }
    }
    return cwist_jq__end(queue, to->operation, cwist_jq__tell_item(&failure, "jobs", count));
}

static cwist_error_t settle(cwist_job_queue_t *queue, cwist_job_t *job, const verdict *to,
                            const char *reason)
{
    int code = CWIST_SUCCESS;
    return settle_batch(queue, &job, 1, &code, to, reason);
}

static cwist_error_t settle_many(cwist_job_queue_t *queue, cwist_job_t *const *jobs, size_t count,
                                 int *codes, const verdict *to)
{
    int own[CWIST_JOB_BATCH_MAX];
    int status = cwist_jq__check_count(count, jobs, "jobs");

    if (status != CWIST_SUCCESS) {
        cwist_jq__error_prefix("%s: ", to->operation);
        return cwist_jq__result(status);
    }
    return settle_batch(queue, jobs, count, codes != NULL ? codes : own, to, NULL);
}

/* ---- public ---- */

cwist_error_t cwist_job_queue_ack(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, &to_ack, NULL);
}

cwist_error_t cwist_job_queue_nack(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, &to_nack, NULL);
}

cwist_error_t cwist_job_queue_nack_reason(cwist_job_queue_t *queue, cwist_job_t *job,
                                          const char *reason)
{
    if (reason != NULL && cwist_jq__check_reason(reason) != CWIST_SUCCESS) {
        cwist_jq__error_prefix("nack: ");
        return cwist_jq__result(CWIST_ERROR_INVALID_PARAM);
    }
    return settle(queue, job, &to_nack, reason);
}

cwist_error_t cwist_job_queue_release(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, &to_release, NULL);
}

cwist_error_t cwist_job_queue_ack_many(cwist_job_queue_t *queue, cwist_job_t *const *jobs,
                                       size_t count, int *codes)
{
    return settle_many(queue, jobs, count, codes, &to_ack);
}

cwist_error_t cwist_job_queue_nack_many(cwist_job_queue_t *queue, cwist_job_t *const *jobs,
                                        size_t count, int *codes)
{
    return settle_many(queue, jobs, count, codes, &to_nack);
}

cwist_error_t cwist_job_queue_release_many(cwist_job_queue_t *queue, cwist_job_t *const *jobs,
                                           size_t count, int *codes)
{
    return settle_many(queue, jobs, count, codes, &to_release);
}

cwist_error_t cwist_job_queue_extend(cwist_job_queue_t *queue_handle, cwist_job_t *job_handle)
{
    cwist_jq__queue *queue = NULL;
    void *object = NULL;
    int status = cwist_jq__begin(&queue, queue_handle, "extend");

    if (status == CWIST_SUCCESS) {
        status = cwist_jq__handle_get(&object, job_handle, CWIST_JQ_KIND_JOB, "job");
    }
    cwist_jq__job *job = object;
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__check_owner(queue, job);
    }
    if (status == CWIST_SUCCESS) {
        status = queue->conn->ops->extend(queue, job, cwist_jq__operation_deadline(queue));
    }
    cwist_jq__unref(job);
    return cwist_jq__end(queue, "extend", status);
}
