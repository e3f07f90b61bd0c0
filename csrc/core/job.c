/* Jobs: one delivery each, in one block of memory. */
#include <string.h>

#include "core/api.h"
#include "core/internal.h"
#include "platform/clock.h"

static void job_finish(void *object)
{
    cwist_jq__job *job = object;

    if (job->body != NULL) {
        job->body_free(job->body);
    }
    cwist_jq__unref(job->queue);
    cwist_jq__free(job);
}

/* Copies a string to *at, which moves on behind its NUL. */
static const char *put(char **at, const char *text, size_t len)
{
    char *begin = *at;
    if (len != 0) {
        memcpy(begin, text, len);
    }
    begin[len] = '\0';
    *at = begin + len + 1;
    return begin;
}

int cwist_jq__job_new(cwist_jq__job **out, cwist_jq__queue *queue,
                      const cwist_jq__delivery *delivery)
{
    bool copied = delivery->body == NULL;
    size_t size = sizeof(cwist_jq__job) + delivery->id_len + delivery->type_len +
                  delivery->receipt_len + 3 + (copied ? delivery->payload_len : 0);
    cwist_jq__job *job = cwist_jq__alloc(size);

    *out = NULL;
    if (job == NULL) {
        if (!copied) {
            delivery->body_free(delivery->body);
        }
        return cwist_jq__no_memory();
    }
    cwist_jq__object_init(job, CWIST_JQ_KIND_JOB, job_finish);
    cwist_jq__ref(queue);
    job->queue = queue;

    char *at = (char *)(job + 1);
    job->id = put(&at, delivery->id, delivery->id_len);
    job->receipt = put(&at, delivery->receipt, delivery->receipt_len);
    bool typed = delivery->type != NULL && delivery->type_len != 0;
    job->type = typed ? put(&at, delivery->type, delivery->type_len) : NULL;
    job->payload = delivery->payload_len != 0 ? delivery->payload : "";
    if (copied && delivery->payload_len != 0) {
        memcpy(at, delivery->payload, delivery->payload_len);
        job->payload = at;
    }
    job->payload_len = delivery->payload_len;
    job->attempts = delivery->attempts;
    job->malformed = delivery->malformed;
    atomic_init(&job->lease_starts, delivery->lease_starts);
    atomic_init(&job->lease_ends, delivery->lease_ends);
    job->body = delivery->body;
    job->body_free = delivery->body_free;
    *out = job;
    return CWIST_SUCCESS;
}

const void *cwist_job_payload(const cwist_job_t *handle, size_t *len)
{
    const cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    if (len != NULL) {
        *len = job != NULL ? job->payload_len : 0;
    }
    return job != NULL ? job->payload : NULL;
}

const char *cwist_job_type(const cwist_job_t *handle)
{
    const cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    return job != NULL ? job->type : NULL;
}

const char *cwist_job_id(const cwist_job_t *handle)
{
    const cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    return job != NULL ? job->id : NULL;
}

uint32_t cwist_job_attempts(const cwist_job_t *handle)
{
    const cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    return job != NULL ? job->attempts : 0;
}

uint64_t cwist_job_lease_remaining_ms(const cwist_job_t *handle)
{
    cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    uint64_t ends = job != NULL ? atomic_load(&job->lease_ends) : 0;
    uint64_t now = cwist_jq__now();
    return ends > now ? (ends - now) / CWIST_JQ_MS : 0;
}

void cwist_job_destroy(cwist_job_t *handle)
{
    void *job = NULL;
    if (handle != NULL &&
        cwist_jq__handle_take(&job, handle, CWIST_JQ_KIND_JOB, "job") == CWIST_SUCCESS) {
        cwist_jq__unref(job);
    }
}
