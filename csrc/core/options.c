/* The rules for what callers pass in. Each refusal names the field, the range and what to do. */
#include <string.h>

#include "core/internal.h"
#include "platform/process.h"

#define NAME_MAX_LEN 128
#define ENCODED_MAX_LEN 250
#define DAY_MS (UINT64_C(24) * 3600 * 1000)

static int invalid_name(const char *why)
{
    return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                          "name %s; allowed: 1 to 128 of A-Z a-z 0-9 _ - . :, not ending in _DEAD",
                          why);
}

static bool name_char(char c)
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
        if (!name_char(name[i])) {
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

/*
 * Reads one UTF-8 character. Returns its length, or 0 when the bytes are not UTF-8 (RFC 3629: no
 * overlong forms, no surrogates, nothing over U+10FFFF).
 */
static size_t utf8_next(const unsigned char *at, size_t left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = at[0] < 0x80 ? 1 : at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : at[0] >= 0xC2 ? 2 : 0;

    if (len == 0 || len > left || at[0] > 0xF4) {
        return 0;
    }
    uint32_t value = len == 1 ? at[0] : at[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xC0u) != 0x80) {
            return 0;
        }
        value = value << 6 | (at[i] & 0x3Fu);
    }
    if (value < least[len] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        return 0;
    }
    *code = value;
    return len;
}

int cwist_jq__check_type(const char *type, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)type;

    if (len > CWIST_JQ_TYPE_MAX) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "type has %zu bytes; allowed: up to %d bytes of UTF-8", len,
                              CWIST_JQ_TYPE_MAX);
    }
    for (size_t i = 0; i < len;) {
        uint32_t code = 0;
        size_t step = utf8_next(bytes + i, len - i, &code);
        if (step == 0) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "type is not UTF-8 at byte %zu; allowed: up to %d bytes of UTF-8",
                                  i, CWIST_JQ_TYPE_MAX);
        }
        if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "type has the control character U+%04X at byte %zu; allowed: up "
                                  "to %d bytes of UTF-8 without control characters",
                                  (unsigned)code, i, CWIST_JQ_TYPE_MAX);
        }
        i += step;
    }
    return CWIST_SUCCESS;
}

int cwist_jq__check_reason(const char *reason)
{
    size_t len = strlen(reason);

    if (len > CWIST_JQ_REASON_MAX) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "reason has %zu bytes; allowed: up to %d bytes of UTF-8", len,
                              CWIST_JQ_REASON_MAX);
    }
    for (size_t i = 0; i < len;) {
        uint32_t code = 0;
        size_t step = utf8_next((const unsigned char *)reason + i, len - i, &code);
        if (step == 0) {
            return cwist_jq__fail(
                CWIST_ERROR_INVALID_PARAM,
                "reason is not UTF-8 at byte %zu; allowed: up to %d bytes of UTF-8", i,
                CWIST_JQ_REASON_MAX);
        }
        i += step;
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
        status = check_number("retry_delay_ms", queue->retry_delay_ms, 0, 365 * DAY_MS,
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
