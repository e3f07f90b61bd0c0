/* Batches: handles in, jobs with their places out, codes and the first failure back. */
#include "core/api.h"
#include "core/renewals.h"
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

bool cwist_jq__piece_take(cwist_jq__piece *piece, const cwist_jq__queue *queue,
                          cwist_job_t *const *handles, size_t count, size_t *next, int *codes,
                          cwist_jq__failure *failure)
{
    size_t end = count - *next < CWIST_JQ_PIECE ? count : *next + CWIST_JQ_PIECE;
    bool some = *next < end;

    piece->count = 0;
    for (; *next < end; ++*next) {
        void *object = NULL;
        int status = cwist_jq__handle_take(&object, handles[*next], CWIST_JQ_KIND_JOB, "job");
        if (status == CWIST_SUCCESS) {
            cwist_jq__keep_no_more(object, true);
            status = cwist_jq__check_owner(queue, object);
        }
        codes[*next] = status;
        if (status == CWIST_SUCCESS) {
            piece->places[piece->count] = (uint16_t)*next;
            piece->jobs[piece->count++] = object;
        } else {
            cwist_jq__failure_note(failure, *next, status);
            cwist_jq__unref(object);
        }
    }
    return some;
}

void cwist_jq__waste_handles(cwist_job_t *const *handles, size_t count, int *codes, int code)
{
    for (size_t i = 0; i < count; i++) {
        cwist_job_destroy(handles[i]);
        codes[i] = code;
    }
}

void cwist_jq__piece_spread(const cwist_jq__piece *piece, const int *codes, int status, int *all,
                            cwist_jq__failure *failure)
{
    bool noted = status == CWIST_SUCCESS;

    for (size_t i = 0; i < piece->count; i++) {
        all[piece->places[i]] = codes[i];
        if (!noted && codes[i] != CWIST_SUCCESS) {
            cwist_jq__failure_note(failure, piece->places[i], codes[i]);
            noted = true;
        }
    }
}

void cwist_jq__piece_drop(cwist_jq__piece *piece)
{
    for (size_t i = 0; i < piece->count; i++) {
        cwist_jq__unref(piece->jobs[i]);
    }
}
