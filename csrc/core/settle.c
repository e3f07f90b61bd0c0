/* The ends of a claimed job: what becomes of it is decided here, for both engines. */
#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"

typedef int (*ending)(cwist_jq__queue *queue, cwist_jq__job *job, const char *reason,
                      uint64_t deadline);

static int end_ack(cwist_jq__queue *queue, cwist_jq__job *job, const char *reason,
                   uint64_t deadline)
{
    (void)reason;
    return queue->conn->ops->ack(queue, job, deadline);
}

/* A nack of the last allowed delivery moves the job to the dead letters at once. */
static int end_nack(cwist_jq__queue *queue, cwist_jq__job *job, const char *reason,
                    uint64_t deadline)
{
    const cwist_jq__ops *ops = queue->conn->ops;

    if (job->attempts < queue->max_retries) {
        return ops->retry(queue, job, queue->retry_delay_ms, deadline);
    }
    int status = ops->bury(queue, job, CWIST_JQ_CAUSE_NACKED, reason, deadline);
    if (status == CWIST_SUCCESS) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_INFO,
                      "queue %s: job %s is dead after %u deliveries (nacked)", queue->name, job->id,
                      job->attempts);
    }
    return status;
}

static int end_release(cwist_jq__queue *queue, cwist_jq__job *job, const char *reason,
                       uint64_t deadline)
{
    (void)reason;
    return queue->conn->ops->release(queue, job, deadline);
}

static int check_owner(const cwist_jq__queue *queue, const cwist_jq__job *job)
{
    return job->queue == queue
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                "job %s was claimed through another queue handle (of queue %s)",
                                job->id, job->queue->name);
}

/* Consumes the job handle whatever happens, then runs the ending. */
static cwist_error_t settle(cwist_job_queue_t *queue_handle, cwist_job_t *job_handle,
                            const char *operation, ending end, const char *reason)
{
    cwist_jq__queue *queue = NULL;
    void *object = NULL;
    int taken = cwist_jq__handle_take(&object, job_handle, CWIST_JQ_KIND_JOB, "job");
    int status = cwist_jq__begin(&queue, queue_handle, operation); /* its text counts before */
    cwist_jq__job *job = object;

    if (status == CWIST_SUCCESS) {
        status = taken;
    }
    if (status == CWIST_SUCCESS) {
        status = check_owner(queue, job);
    }
    if (status == CWIST_SUCCESS) {
        status = end(queue, job, reason, cwist_jq__operation_deadline(queue));
    }
    cwist_jq__unref(job);
    return cwist_jq__end(queue, operation, status);
}

cwist_error_t cwist_job_queue_ack(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, "ack", end_ack, NULL);
}

cwist_error_t cwist_job_queue_nack(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, "nack", end_nack, NULL);
}

cwist_error_t cwist_job_queue_nack_reason(cwist_job_queue_t *queue, cwist_job_t *job,
                                          const char *reason)
{
    if (reason != NULL && cwist_jq__check_reason(reason) != CWIST_SUCCESS) {
        cwist_jq__error_prefix("nack: ");
        return cwist_jq__result(CWIST_ERROR_INVALID_PARAM);
    }
    return settle(queue, job, "nack", end_nack, reason);
}

cwist_error_t cwist_job_queue_release(cwist_job_queue_t *queue, cwist_job_t *job)
{
    return settle(queue, job, "release", end_release, NULL);
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
        status = check_owner(queue, job);
    }
    if (status == CWIST_SUCCESS) {
        status = queue->conn->ops->extend(queue, job, cwist_jq__operation_deadline(queue));
    }
    cwist_jq__unref(job);
    return cwist_jq__end(queue, "extend", status);
}

const char *cwist_jq__cause_name(cwist_jq__cause cause)
{
    switch (cause) {
    case CWIST_JQ_CAUSE_NACKED:
        return "nacked";
    case CWIST_JQ_CAUSE_LEASE_EXPIRED:
        return "lease-expired";
    case CWIST_JQ_CAUSE_MALFORMED:
        return "malformed";
    case CWIST_JQ_CAUSE_REJECTED:
        return "rejected";
    }
    return "unknown";
}
