/* The rules for what callers pass in. Each refusal names the field, the range and what to do. */
#include <string.h>

#include "core/internal.h"
#include "platform/process.h"

#define NAME_MAX_LEN 128
#define ENCODED_MAX_LEN 250
#define HOUR_MS (UINT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)

static int invalid_name(const char *why)
{
    return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                          "name %s; allowed: 1 to 128 of A-Z a-z 0-9 _ - . :, not ending in _DEAD",
                          why);
}

bool cwist_jq__name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

static int check_name(const char *name)
{
    size_t len = name != NULL ? strlen(name) : 0;
    size_t encoded = 0;

    if (len == 0) {
        return invalid_name(name == NULL ? "is missing" : "is empty");
    }
    if (len > NAME_MAX_LEN) {
        return invalid_name("is too long");
    }
    for (size_t i = 0; i < len; i++) {
        if (!cwist_jq__name_char(name[i])) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "name has the byte 0x%02x at position %zu; allowed: 1 to 128 of "
                                  "A-Z a-z 0-9 _ - . :, not ending in _DEAD",
                                  (unsigned char)name[i], i);
        }
        encoded += name[i] == '.' || name[i] == ':' ? 3 : 1;
    }
    if (encoded > ENCODED_MAX_LEN) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "name is too long with . and : counted three times: %zu, allowed: %d",
                              encoded, ENCODED_MAX_LEN);
    }
    if (len >= 5 && strcmp(name + len - 5, "_DEAD") == 0) {
        return invalid_name("ends in _DEAD, which is kept for dead letters");
    }
    return CWIST_SUCCESS;
}

static int check_consumer(const char *consumer)
{
    size_t len = strlen(consumer);

    if (len == 0 || len > NAME_MAX_LEN) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "consumer has %zu characters; allowed: 1 to 128 printable ASCII "
                              "without space, or NULL for a unique one",
                              len);
    }
    for (size_t i = 0; i < len; i++) {
        if (consumer[i] <= 0x20 || consumer[i] >= 0x7F) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "consumer has the byte 0x%02x at position %zu; allowed: 1 to 128 "
                                  "printable ASCII without space",
                                  (unsigned char)consumer[i], i);
        }
    }
    return CWIST_SUCCESS;
}

static int check_number(const char *field, uint64_t value, uint64_t least, uint64_t most,
                        const char *range)
{
    return value >= least && value <= most
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s is %llu; allowed: %s", field,
                                (unsigned long long)value, range);
}

static char *unique_consumer(void)
{
    char host[64];

    cwist_jq__host_name(host, sizeof host);
    for (char *at = host; *at != '\0'; at++) {
        if (*at <= 0x20 || *at >= 0x7F) {
            *at = '-';
        }
    }
    return cwist_jq__format("%s-%llu-%08llx", host, (unsigned long long)cwist_jq__process_id(),
                            (unsigned long long)(cwist_jq__random() & 0xFFFFFFFFu));
}

int cwist_jq__apply_opts(cwist_jq__queue *queue, const cwist_job_queue_opts_t *opts)
{
    int status = opts != NULL ? check_name(opts->name)
                              : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "opts is NULL");
    if (status != CWIST_SUCCESS) {
        return status;
    }
    queue->visibility_ms = opts->visibility_timeout_ms != 0 ? opts->visibility_timeout_ms : 30000;
    queue->max_retries = opts->max_retries != 0 ? opts->max_retries : 5;
    queue->retry_delay_ms = opts->retry_delay_ms;
    queue->consumer_is_ours = opts->consumer == NULL;

    if (!queue->consumer_is_ours) {
        status = check_consumer(opts->consumer);
    }
    if (status == CWIST_SUCCESS) {
        status = check_number("visibility_timeout_ms", queue->visibility_ms, 10, 7 * DAY_MS,
                              "10 ms to 604800000 ms (7 days), 0 for the default of 30000");
    }
    if (status == CWIST_SUCCESS) {
        status = check_number("max_retries", queue->max_retries, 1, CWIST_JQ_MAX_ATTEMPTS,
                              "1 to 1000000, 0 for the default of 5");
    }
    if (status == CWIST_SUCCESS) {
        status = check_number("retry_delay_ms", queue->retry_delay_ms, 0, CWIST_JQ_DELAY_MAX_MS,
                              "0 to 31536000000 ms (365 days)");
    }
    if (status != CWIST_SUCCESS) {
        return status;
    }
    queue->name = cwist_jq__strdup(opts->name);
    queue->consumer =
        queue->consumer_is_ours ? unique_consumer() : cwist_jq__strdup(opts->consumer);
    return queue->name != NULL && queue->consumer != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
}

/* ---- further options ---- */

void cwist_job_queue_ext_opts_init(cwist_job_queue_ext_opts_t *ext)
{
    if (ext != NULL) {
        memset(ext, 0, sizeof *ext);
        ext->struct_size = sizeof *ext;
    }
}

/* The cap of growing delays; 0 stands for an hour, or for a first delay that is longer. */
static int apply_cap(cwist_jq__queue *queue, uint64_t cap_ms)
{
    uint64_t least = queue->retry_delay_ms;

    queue->retry_delay_max_ms = cap_ms != 0 ? cap_ms : least > HOUR_MS ? least : HOUR_MS;
    return check_number(
        "retry_delay_max_ms", queue->retry_delay_max_ms, least, CWIST_JQ_DELAY_MAX_MS,
        "retry_delay_ms to 31536000000 ms (365 days), 0 for the default of 3600000");
}

int cwist_jq__apply_ext_opts(cwist_jq__queue *queue, const cwist_job_queue_ext_opts_t *given)
{
    cwist_job_queue_ext_opts_t ext;

    cwist_job_queue_ext_opts_init(&ext);
    if (given != NULL) {
        if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof ext) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "ext->struct_size is %zu; fill ext with "
                                  "cwist_job_queue_ext_opts_init() of this version",
                                  given->struct_size);
        }
        memcpy(&ext, given, given->struct_size);
    }
    if (ext.retry_backoff != CWIST_JOB_BACKOFF_FIXED &&
        ext.retry_backoff != CWIST_JOB_BACKOFF_EXPONENTIAL) {
        return cwist_jq__fail(
            CWIST_ERROR_INVALID_PARAM, "retry_backoff is %d; allowed: %d (fixed), %d (exponential)",
            ext.retry_backoff, CWIST_JOB_BACKOFF_FIXED, CWIST_JOB_BACKOFF_EXPONENTIAL);
    }
    queue->retry_backoff = ext.retry_backoff;
    queue->retry_jitter_percent = ext.retry_jitter_percent;
    queue->max_length = ext.max_length;
    queue->auto_renew = ext.auto_renew;

    int status = apply_cap(queue, ext.retry_delay_max_ms);
    if (status == CWIST_SUCCESS) {
        status = check_number("retry_jitter_percent", ext.retry_jitter_percent, 0, 100, "0 to 100");
    }
    if (status == CWIST_SUCCESS) {
        status = check_number("max_length", ext.max_length, 0, 1000000000,
                              "1 to 1000000000, 0 for no limit");
    }
    return status;
}
