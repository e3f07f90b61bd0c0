/* Batches: handles in, jobs with their places out, codes and the first failure back. */
#include "core/api.h"
#include "core/settle.h"

int cwist_jq__check_count(size_t count, const void *items, const char *what)
{
    if (count < 1 || count > CWIST_JOB_BATCH_MAX) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "count is %zu; allowed: 1 to %d", count,
                              CWIST_JOB_BATCH_MAX);
    }
    if (items == NULL) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s is NULL", what);
    }
    return CWIST_SUCCESS;
}

int cwist_jq__tell_item(const cwist_jq__failure *failure, const char *what, size_t count)
{
    int status = cwist_jq__failure_tell(failure);

    if (status != CWIST_SUCCESS && count > 1) {
        cwist_jq__error_prefix("%s[%zu]: ", what, failure->item);
    }
    return status;
}

int cwist_jq__check_owner(const cwist_jq__queue *queue, const cwist_jq__job *job)
{
    return job->queue == queue
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                "job %s was claimed through another queue handle (of queue %s)",
                                job->id, job->queue->name);
}

void cwist_jq__batch_take(cwist_jq__batch *batch, const cwist_jq__queue *queue,
                          cwist_job_t *const *handles, size_t count, int *codes,
                          cwist_jq__failure *failure)
{
    for (size_t i = 0; i < count; i++) {
        void *object = NULL;
        int status = cwist_jq__handle_take(&object, handles[i], CWIST_JQ_KIND_JOB, "job");
        if (status == CWIST_SUCCESS) {
            status = cwist_jq__check_owner(queue, object);
        }
        codes[i] = status;
        if (status == CWIST_SUCCESS) {
            batch->places[batch->count] = (uint16_t)i;
            batch->jobs[batch->count++] = object;
        } else {
            cwist_jq__failure_note(failure, i, status);
            cwist_jq__unref(object);
        }
    }
}

void cwist_jq__batch_waste(cwist_job_t *const *handles, size_t count, int *codes, int code)
{
    for (size_t i = 0; i < count; i++) {
        cwist_job_destroy(handles[i]);
        codes[i] = code;
    }
}

void cwist_jq__batch_spread(const cwist_jq__batch *batch, const int *codes, int status, int *all,
                            cwist_jq__failure *failure)
{
    bool noted = status == CWIST_SUCCESS;

    for (size_t i = 0; i < batch->count; i++) {
        all[batch->places[i]] = codes[i];
        if (!noted && codes[i] != CWIST_SUCCESS) {
            cwist_jq__failure_note(failure, batch->places[i], codes[i]);
            noted = true;
        }
    }
}

void cwist_jq__batch_drop(cwist_jq__batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        cwist_jq__unref(batch->jobs[i]);
    }
}
