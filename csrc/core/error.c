/* Error codes, their names, and the thread's error text. */
#include <stdio.h>
#include <string.h>

#include "core/api.h"
#include "core/internal.h"

#define TEXT_SIZE CWIST_JQ_TEXT_SIZE

/* A fixed buffer, so that telling an error cannot fail. */
static _Thread_local char last_text[TEXT_SIZE];

/* Cuts a text to whole UTF-8 characters and replaces control characters: always one clean line. */
static void tidy(char *text)
{
    size_t len = strlen(text);

    if (len == TEXT_SIZE - 1) {
        while (len > 0 && ((unsigned char)text[len - 1] & 0xC0u) == 0x80u) {
            len--;
        }
        if (len > 0 && (unsigned char)text[len - 1] >= 0xC0u) {
            len--;
        }
        text[len] = '\0';
    }
    for (char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F) {
            *at = ' ';
        }
    }
}

int cwist_jq__fail(int code, const char *format, ...)
{
    char text[TEXT_SIZE]; /* the arguments may point into last_text */
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tidy(text);
    memcpy(last_text, text, sizeof text);
    return code;
}

int cwist_jq__no_memory(void)
{
    return cwist_jq__fail(CWIST_ERROR_NOMEM, "out of memory");
}

const char *cwist_jq__error_text(void)
{
    return last_text;
}

void cwist_jq__error_prefix(const char *format, ...)
{
    char prefix[TEXT_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    (void)cwist_jq__fail(CWIST_FAILURE, "%s%s", prefix, last_text);
}

void cwist_jq__failure_note(cwist_jq__failure *failure, size_t item, int code)
{
    if (failure->code == CWIST_SUCCESS || item < failure->item) {
        failure->code = code;
        failure->item = item;
        memcpy(failure->text, last_text, sizeof last_text);
    }
}

int cwist_jq__failure_tell(const cwist_jq__failure *failure)
{
    if (failure->code != CWIST_SUCCESS) {
        memcpy(last_text, failure->text, sizeof last_text);
    }
    return failure->code;
}

cwist_error_t cwist_jq__result(int code)
{
    cwist_error_t error = make_error(CWIST_ERR_INT16);
    error.error.err_i16 = (int16_t)code;
    return error;
}

const char *cwist_job_last_error(void)
{
    return last_text;
}

bool cwist_error_is_ok(const cwist_error_t *error)
{
    if (error == NULL) {
        return false;
    }
    switch (error->errtype) {
    case CWIST_ERR_INT8:
        return error->error.err_i8 == 0;
    case CWIST_ERR_INT16:
        return error->error.err_i16 == 0;
    case CWIST_ERR_INT32:
        return error->error.err_i32 == 0;
    case CWIST_ERR_INT64:
        return error->error.err_i64 == 0;
    case CWIST_ERR_UINT8:
        return error->error.err_u8 == 0;
    case CWIST_ERR_UINT16:
        return error->error.err_u16 == 0;
    case CWIST_ERR_UINT32:
        return error->error.err_u32 == 0;
    case CWIST_ERR_UINT64:
        return error->error.err_u64 == 0;
    }
    return false;
}

void cwist_error_dispose(cwist_error_t *error)
{
    (void)error; /* the kinds of this library own nothing */
}

int cwist_job_error_code(const cwist_error_t *error)
{
    return error != NULL && error->errtype == CWIST_ERR_INT16 ? error->error.err_i16
                                                              : CWIST_FAILURE;
}

#define CODES(X)                                                                                   \
    X(CWIST_SUCCESS)                                                                               \
    X(CWIST_FAILURE)                                                                               \
    X(CWIST_ERROR_IO)                                                                              \
    X(CWIST_ERROR_NOMEM)                                                                           \
    X(CWIST_ERROR_INVALID_PARAM)                                                                   \
    X(CWIST_ERROR_PROTOCOL)                                                                        \
    X(CWIST_ERROR_TIMEOUT)                                                                         \
    X(CWIST_ERROR_LEASE_LOST)                                                                      \
    X(CWIST_ERROR_CLOSED)                                                                          \
    X(CWIST_ERROR_UNSUPPORTED)                                                                     \
    X(CWIST_ERROR_TOO_LARGE)                                                                       \
    X(CWIST_ERROR_DENIED)                                                                          \
    X(CWIST_ERROR_OUTCOME_UNKNOWN)                                                                 \
    X(CWIST_ERROR_REFUSED)                                                                         \
    X(CWIST_ERROR_CONFLICT)                                                                        \
    X(CWIST_ERROR_INTERRUPTED)                                                                     \
    X(CWIST_ERROR_NOT_SENT)                                                                        \
    X(CWIST_ERROR_NOT_FOUND)                                                                       \
    X(CWIST_ERROR_FULL)

const char *cwist_job_error_name(int code)
{
#define NAME(symbol)                                                                               \
    case symbol:                                                                                   \
        return #symbol;
    switch (code) {
        CODES(NAME)
    default:
        return "unknown code";
    }
#undef NAME
}
