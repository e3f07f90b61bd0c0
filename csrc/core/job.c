/* Jobs: one delivery each, in one block of memory. */
#include <string.h>

#include "core/api.h"
#include "core/internal.h"
#include "core/renewals.h"
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

/* The size of the headers' table and strings. */
static size_t headers_size(const cwist_jq__delivery *delivery)
{
    size_t size = delivery->header_count * sizeof(cwist_job_header_t);

    for (size_t i = 0; i < delivery->header_count; i++) {
        size += delivery->headers[i].name_len + delivery->headers[i].value_len + 2;
    }
    return size;
}

/* Fills in the table, which has its place right behind the job. */
static void put_headers(cwist_jq__job *job, char **at, const cwist_jq__delivery *delivery)
{
    cwist_job_header_t *table = (cwist_job_header_t *)(job + 1);

    for (size_t i = 0; i < delivery->header_count; i++) {
        const cwist_jq__field *from = &delivery->headers[i];
        table[i].name = put(at, from->name, from->name_len);
        table[i].value = put(at, from->value, from->value_len);
    }
    job->headers = delivery->header_count != 0 ? table : NULL;
    job->header_count = delivery->header_count;
}

int cwist_jq__job_new(cwist_jq__job **out, cwist_jq__queue *queue,
                      const cwist_jq__delivery *delivery)
{
    bool copied = delivery->body == NULL;
    size_t size = sizeof(cwist_jq__job) + headers_size(delivery) + delivery->id_len +
                  delivery->type_len + delivery->receipt_len + delivery->key_len + 4 +
                  (copied ? delivery->payload_len : 0);
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

    char *at = (char *)(job + 1) + delivery->header_count * sizeof(cwist_job_header_t);
    put_headers(job, &at, delivery);
    job->id = put(&at, delivery->id, delivery->id_len);
    job->receipt = put(&at, delivery->receipt, delivery->receipt_len);
    bool typed = delivery->type != NULL && delivery->type_len != 0;
    job->type = typed ? put(&at, delivery->type, delivery->type_len) : NULL;
    job->key = delivery->key != NULL ? put(&at, delivery->key, delivery->key_len) : NULL;
    job->payload = delivery->payload_len != 0 ? delivery->payload : "";
    if (copied && delivery->payload_len != 0) {
        memcpy(at, delivery->payload, delivery->payload_len);
        job->payload = at;
    }
    job->payload_len = delivery->payload_len;
    job->attempts = delivery->attempts;
    job->malformed = delivery->malformed;
    atomic_init(&job->lost, false);
    atomic_init(&job->lease_starts, delivery->lease_starts);
    atomic_init(&job->lease_ends, delivery->lease_ends);
    atomic_init(&job->over, false);
    atomic_init(&job->is_kept, false);
    job->kept = (cwist_jq__kept_job){0};
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

bool cwist_job_lease_lost(const cwist_job_t *handle)
{
    cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    return job != NULL &&
           (atomic_load(&job->lost) || atomic_load(&job->lease_ends) <= cwist_jq__now());
}

size_t cwist_job_header_count(const cwist_job_t *handle)
{
    const cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    return job != NULL ? job->header_count : 0;
}

bool cwist_job_header_at(const cwist_job_t *handle, size_t index, const char **name,
                         const char **value)
{
    const cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);
    bool found = job != NULL && index < job->header_count;

    if (name != NULL) {
        *name = found ? job->headers[index].name : NULL;
    }
    if (value != NULL) {
        *value = found ? job->headers[index].value : NULL;
    }
    return found;
}

const char *cwist_job_header_value(const cwist_job_t *handle, const char *name)
{
    const cwist_jq__job *job = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_JOB);

    for (size_t i = 0; job != NULL && name != NULL && i < job->header_count; i++) {
        if (strcmp(job->headers[i].name, name) == 0) {
            return job->headers[i].value;
        }
    }
    return NULL;
}

void cwist_job_destroy(cwist_job_t *handle)
{
    void *job = NULL;
    if (handle != NULL &&
        cwist_jq__handle_take(&job, handle, CWIST_JQ_KIND_JOB, "job") == CWIST_SUCCESS) {
        cwist_jq__keep_no_more(job, false);
        cwist_jq__unref(job);
    }
}
