/* The ends of a claimed job: what becomes of it is decided here, for both engines. */
#include "core/settle.h"
#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"
#include "core/renewals.h"

/* ---- the endings ---- */

/* What the caller said beside the verdict. */
typedef struct terms {
    const char *reason; /* NULL: none */
    bool delayed;       /* delay_ms counts; else the policy of the queue */
    uint64_t delay_ms;
} terms;

static const terms plain = {NULL, false, 0};

typedef int (*ending)(cwist_jq__queue *queue, const cwist_jq__piece *piece, const terms *by,
                      uint64_t deadline, int *codes);

static uint64_t successes(const int *codes, size_t count)
{
    uint64_t done = 0;

    for (size_t i = 0; i < count; i++) {
        done += codes[i] == CWIST_SUCCESS ? 1 : 0;
    }
    return done;
}

void cwist_jq__count_done(_Atomic uint64_t *counter, const int *codes, size_t count)
{
    atomic_fetch_add_explicit(counter, successes(codes, count), memory_order_relaxed);
}

static int end_ack(cwist_jq__queue *queue, const cwist_jq__piece *piece, const terms *by,
                   uint64_t deadline, int *codes)
{
    (void)by;
    int status = queue->conn->ops->ack(queue, piece->jobs, piece->count, deadline, codes);
    cwist_jq__count_done(&queue->counters.acked, codes, piece->count);
    return status;
}

static int end_retry(cwist_jq__queue *queue, const cwist_jq__piece *piece, const terms *by,
                     uint64_t deadline, int *codes)
{
    uint64_t delays_ms[CWIST_JQ_PIECE];

    for (size_t i = 0; i < piece->count; i++) {
        delays_ms[i] =
            by->delayed ? by->delay_ms : cwist_jq__retry_delay_ms(queue, piece->jobs[i]->attempts);
    }
    int status =
        queue->conn->ops->retry(queue, piece->jobs, piece->count, delays_ms, deadline, codes);
    cwist_jq__count_done(&queue->counters.nacked, codes, piece->count);
    return status;
}

static int bury(cwist_jq__queue *queue, const cwist_jq__piece *piece, cwist_jq__cause cause,
                const char *reason, uint64_t deadline, int *codes)
{
    int status =
        queue->conn->ops->bury(queue, piece->jobs, piece->count, cause, reason, deadline, codes);

    cwist_jq__count_done(&queue->counters.nacked, codes, piece->count);
    cwist_jq__count_done(&queue->counters.buried, codes, piece->count);
    cwist_jq__log_dead(queue, CWIST_JOB_LOG_INFO, cause, piece->jobs, piece->count, codes);
    return status;
}

static int end_dead(cwist_jq__queue *queue, const cwist_jq__piece *piece, const terms *by,
                    uint64_t deadline, int *codes)
{
    return bury(queue, piece, CWIST_JQ_CAUSE_NACKED, by->reason, deadline, codes);
}

static int end_reject(cwist_jq__queue *queue, const cwist_jq__piece *piece, const terms *by,
                      uint64_t deadline, int *codes)
{
    return bury(queue, piece, CWIST_JQ_CAUSE_REJECTED, by->reason, deadline, codes);
}

static int end_release(cwist_jq__queue *queue, const cwist_jq__piece *piece, const terms *by,
                       uint64_t deadline, int *codes)
{
    int status =
        queue->conn->ops->release(queue, piece->jobs, piece->count, by->delay_ms, deadline, codes);
    cwist_jq__count_done(&queue->counters.released, codes, piece->count);
    return status;
}

/* What becomes of jobs; another end for those that had their last allowed delivery. */
typedef struct verdict {
    const char *operation;
    ending end;
    ending end_last; /* NULL: the same */
} verdict;

static const verdict to_ack = {"ack", end_ack, NULL};
static const verdict to_nack = {"nack", end_retry, end_dead};
static const verdict to_reject = {"nack", end_reject, NULL};
static const verdict to_release = {"release", end_release, NULL};

/* ---- batches, a piece at a time ---- */

static void run(cwist_jq__queue *queue, const cwist_jq__piece *piece, ending end, const terms *by,
                uint64_t deadline, int *all, cwist_jq__failure *failure)
{
    int codes[CWIST_JQ_PIECE];

    if (piece->count != 0) {
        int status = end(queue, piece, by, deadline, codes);
        cwist_jq__piece_spread(piece, codes, status, all, failure);
    }
}

/* Runs an ending for those jobs of a piece that had, or had not, their last allowed delivery. */
static void run_part(cwist_jq__queue *queue, const cwist_jq__piece *piece, bool last, ending end,
                     const terms *by, uint64_t deadline, int *all, cwist_jq__failure *failure)
{
    cwist_jq__piece part;

    part.count = 0;
    for (size_t i = 0; i < piece->count; i++) {
        if ((piece->jobs[i]->attempts >= queue->max_retries) == last) {
            part.places[part.count] = piece->places[i];
            part.jobs[part.count++] = piece->jobs[i];
        }
    }
    run(queue, &part, end, by, deadline, all, failure);
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
                                  size_t count, int *all, const verdict *to, const terms *by)
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
            run(queue, &piece, to->end, by, deadline, all, &failure);
        } else {
            run_part(queue, &piece, false, to->end, by, deadline, all, &failure);
            run_part(queue, &piece, true, to->end_last, by, deadline, all, &failure);
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
                            const terms *by)
{
    int code = CWIST_SUCCESS;
    return settle_batch(queue, &job, 1, &code, to, by);
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
    return settle_batch(queue, jobs, count, codes != NULL ? codes : own, to, &plain);
}

/* ---- public ---- */

cwist_error_t cwist_job_queue_ack(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, &to_ack, &plain);
}

cwist_error_t cwist_job_queue_nack(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, &to_nack, &plain);
}

static int check_nack(const cwist_job_nack_opts_t *opts)
{
    int status = opts->reason != NULL ? cwist_jq__check_reason(opts->reason) : CWIST_SUCCESS;

    if (status == CWIST_SUCCESS && opts->delayed) {
        status = cwist_jq__check_delay(opts->delay_ms);
    }
    if (status == CWIST_SUCCESS && opts->dead && opts->delayed) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                "dead and delayed are both set; allowed: one of them");
    }
    return status;
}

cwist_error_t cwist_job_queue_nack_with(cwist_job_queue_t *queue, cwist_job_t *job,
                                        const cwist_job_nack_opts_t *opts)
{
    static const cwist_job_nack_opts_t none;

    opts = opts != NULL ? opts : &none;
    if (check_nack(opts) != CWIST_SUCCESS) {
        cwist_jq__error_prefix("nack: ");
        return cwist_jq__result(CWIST_ERROR_INVALID_PARAM);
    }
    terms by = {opts->reason, opts->delayed, opts->delay_ms};
    return settle(queue, job, opts->dead ? &to_reject : &to_nack, &by);
}

cwist_error_t cwist_job_queue_nack_reason(cwist_job_queue_t *queue, cwist_job_t *job,
                                          const char *reason)
{
    cwist_job_nack_opts_t opts = {.reason = reason};
    return cwist_job_queue_nack_with(queue, job, &opts);
}

cwist_error_t cwist_job_queue_release_after(cwist_job_queue_t *queue, cwist_job_t *job,
                                            uint64_t delay_ms)
{
    if (cwist_jq__check_delay(delay_ms) != CWIST_SUCCESS) {
        cwist_jq__error_prefix("release: ");
        return cwist_jq__result(CWIST_ERROR_INVALID_PARAM);
    }
    terms by = {NULL, true, delay_ms};
    return settle(queue, job, &to_release, &by);
}

cwist_error_t cwist_job_queue_release(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, &to_release, &plain);
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

void cwist_jq__note_lost(cwist_jq__job *job, int code)
{
    if (code == CWIST_ERROR_LEASE_LOST) {
        atomic_store(&job->lost, true);
    }
}

/* Takes references of the queue and of a job that was claimed through it. */
static int begin_with_job(cwist_jq__queue **queue, cwist_jq__job **job,
                          const cwist_job_queue_t *queue_handle, const cwist_job_t *job_handle,
                          const char *operation)
{
    void *object = NULL;
    int status = cwist_jq__begin(queue, queue_handle, operation);

    if (status == CWIST_SUCCESS) {
        status = cwist_jq__handle_get(&object, job_handle, CWIST_JQ_KIND_JOB, "job");
    }
    *job = object;
    return status == CWIST_SUCCESS ? cwist_jq__check_owner(*queue, *job) : status;
}

cwist_error_t cwist_job_queue_extend(cwist_job_queue_t *queue_handle, cwist_job_t *job_handle)
{
    cwist_jq__queue *queue = NULL;
    cwist_jq__job *job = NULL;
    int status = begin_with_job(&queue, &job, queue_handle, job_handle, "extend");

    if (status == CWIST_SUCCESS) {
        int code = CWIST_SUCCESS;
        status =
            queue->conn->ops->extend(queue, &job, 1, cwist_jq__operation_deadline(queue), &code);
        cwist_jq__note_lost(job, code);
    }
    cwist_jq__unref(job);
    return cwist_jq__end(queue, "extend", status);
}

cwist_error_t cwist_job_queue_renew(cwist_job_queue_t *queue_handle, cwist_job_t *job_handle)
{
    cwist_jq__queue *queue = NULL;
    cwist_jq__job *job = NULL;
    int status = begin_with_job(&queue, &job, queue_handle, job_handle, "renew");

    if (status == CWIST_SUCCESS && cwist_job_lease_lost(job_handle)) {
        status = cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the lease of job %s is over", job->id);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__keep(queue, &job, 1);
    }
    cwist_jq__unref(job);
    return cwist_jq__end(queue, "renew", status);
}
