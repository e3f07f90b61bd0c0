/* The rules for a job that is to be stored. */
#include <stdio.h>
#include <string.h>

#include "core/internal.h"

int cwist_jq__check_type(const char *type, size_t len)
{
    return cwist_jq__check_text("type", type, len, CWIST_JQ_TYPE_MAX, true);
}

int cwist_jq__check_reason(const char *reason)
{
    return cwist_jq__check_text("reason", reason, strlen(reason), CWIST_JQ_REASON_MAX, false);
}

int cwist_jq__check_delay(uint64_t delay_ms)
{
    return delay_ms <= CWIST_JQ_DELAY_MAX_MS
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                "delay_ms is %llu; allowed: 0 to 31536000000 ms (365 days)",
                                (unsigned long long)delay_ms);
}

static int check_key(const char *key)
{
    size_t len = strlen(key);

    return len != 0 ? cwist_jq__check_text("dedupe_key", key, len, CWIST_JQ_KEY_MAX, true)
                    : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                     "dedupe_key is empty; allowed: 1 to %d bytes, NULL for none",
                                     CWIST_JQ_KEY_MAX);
}

/* ---- headers ---- */

static bool name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether a name begins with the prefix, which is in small letters; in any case. */
static bool begins(const char *name, const char *prefix)
{
    while (*prefix != '\0' && lower(*name) == *prefix) {
        name++;
        prefix++;
    }
    return *prefix == '\0';
}

static int check_header_name(size_t place, const char *name)
{
    size_t len = name != NULL ? strlen(name) : 0;

    if (len == 0 || len > CWIST_JQ_HEADER_NAME_MAX) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "headers[%zu].name has %zu characters; allowed: 1 to %d of "
                              "A-Z a-z 0-9 -",
                              place, len, CWIST_JQ_HEADER_NAME_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        if (!name_char(name[i])) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "headers[%zu].name has the byte 0x%02x at position %zu; allowed: "
                                  "1 to %d of A-Z a-z 0-9 -",
                                  place, (unsigned char)name[i], i, CWIST_JQ_HEADER_NAME_MAX);
        }
    }
    if (begins(name, "nats-") || begins(name, "cwist-")) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "headers[%zu].name is %s; names that begin with Nats- or Cwist- are "
                              "kept for the servers and this library",
                              place, name);
    }
    return CWIST_SUCCESS;
}

static int check_header_value(size_t place, const char *value)
{
    size_t len = value != NULL ? strlen(value) : 0;
    char field[40];

    (void)snprintf(field, sizeof field, "headers[%zu].value", place);
    if (value == NULL) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s is NULL", field);
    }
    if (len != 0 && (value[0] == ' ' || value[len - 1] == ' ')) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "%s has a space at an end; allowed: none, the servers drop it",
                              field);
    }
    return cwist_jq__check_text(field, value, len, CWIST_JQ_HEADER_VALUE_MAX, true);
}

static int check_headers(const cwist_job_header_t *headers, size_t count)
{
    int status = CWIST_SUCCESS;

    if (count > CWIST_JOB_HEADERS_MAX) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "header_count is %zu; allowed: 0 to %d",
                              count, CWIST_JOB_HEADERS_MAX);
    }
    if (count != 0 && headers == NULL) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "headers is NULL with a count of %zu; allowed: NULL with 0", count);
    }
    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        status = check_header_name(i, headers[i].name);
        if (status == CWIST_SUCCESS) {
            status = check_header_value(i, headers[i].value);
        }
        for (size_t j = 0; j < i && status == CWIST_SUCCESS; j++) {
            if (strcmp(headers[i].name, headers[j].name) == 0) {
                status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                        "headers[%zu].name is %s, as that of headers[%zu]; "
                                        "allowed: each name once",
                                        i, headers[i].name, j);
            }
        }
    }
    return status;
}

int cwist_jq__check_item(const cwist_job_item_t *item)
{
    int status = CWIST_SUCCESS;

    if (item->payload == NULL && item->len != 0) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "payload is NULL with a length of %zu; allowed: NULL with 0",
                              item->len);
    }
    if (item->type != NULL) {
        status = cwist_jq__check_type(item->type, strlen(item->type));
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__check_delay(item->delay_ms);
    }
    if (status == CWIST_SUCCESS && item->dedupe_key != NULL) {
        status = check_key(item->dedupe_key);
    }
    return status == CWIST_SUCCESS ? check_headers(item->headers, item->header_count) : status;
}
