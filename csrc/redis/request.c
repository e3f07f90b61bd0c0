/* Commands in the Redis protocol, written by hand: counts, lengths and bytes, no format strings. */
#include <string.h>

#include "redis/redis.h"

#define BORROW_FROM 8192 /* copying less costs less than another part of a send */
#define KEEP_MAX 65536   /* a larger buffer is not kept for the next request */

void cwist_jq__request_clear(cwist_jq__redis_request *request)
{
    cwist_jq__free(request->data);
    memset(request, 0, sizeof *request);
}

void cwist_jq__request_reset(cwist_jq__redis_request *request)
{
    if (request->cap > KEEP_MAX) {
        cwist_jq__request_clear(request);
        return;
    }
    request->len = 0;
    request->borrowed_len = 0;
    request->borrowed = 0;
    request->commands = 0;
    request->failed = false;
}

/* Makes room for more bytes. */
static bool grow(cwist_jq__redis_request *request, size_t more)
{
    if (request->failed || more > SIZE_MAX / 2 - request->len) {
        request->failed = true;
        return false;
    }
    size_t need = request->len + more;
    size_t cap = need < 512 ? 1024 : need * 2;
    char *data = cwist_jq__realloc(request->data, cap);
    if (data == NULL) {
        request->failed = true;
        return false;
    }
    request->data = data;
    request->cap = cap;
    return true;
}

static inline bool reserve(cwist_jq__redis_request *request, size_t more)
{
    return more <= request->cap - request->len || grow(request, more);
}

void cwist_jq__request_raw(cwist_jq__redis_request *request, const void *data, size_t len)
{
    if (reserve(request, len) && len != 0) {
        memcpy(request->data + request->len, data, len);
        request->len += len;
    }
}

#define NUMBER_SIZE 24

/* Writes the digits at the end of the field; returns where they begin. */
static char *digits(char field[NUMBER_SIZE], uint64_t number)
{
    char *at = field + NUMBER_SIZE;

    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return at;
}

/* A line like "$12\r\n". */
static void put_count(cwist_jq__redis_request *request, char sign, size_t count)
{
    char field[NUMBER_SIZE];
    const char *from = digits(field, count);
    size_t len = (size_t)(field + NUMBER_SIZE - from);

    if (reserve(request, len + 3)) {
        char *at = request->data + request->len;
        *at++ = sign;
        memcpy(at, from, len);
        at[len] = '\r';
        at[len + 1] = '\n';
        request->len += len + 3;
    }
}

void cwist_jq__request_name(cwist_jq__redis_request *request, const char *name)
{
    if (request->commands < CWIST_JQ_REDIS_NAMES) {
        request->names[request->commands] = name;
    }
    request->commands++;
}

void cwist_jq__request_command(cwist_jq__redis_request *request, const char *name, size_t args)
{
    cwist_jq__request_name(request, name);
    put_count(request, '*', args + 1);
    cwist_jq__request_text(request, name);
}

void cwist_jq__request_bytes(cwist_jq__redis_request *request, const void *data, size_t len)
{
    put_count(request, '$', len);
    cwist_jq__request_raw(request, data, len);
    cwist_jq__request_raw(request, "\r\n", 2);
}

void cwist_jq__request_text(cwist_jq__redis_request *request, const char *text)
{
    cwist_jq__request_bytes(request, text, strlen(text));
}

void cwist_jq__request_number(cwist_jq__redis_request *request, uint64_t number)
{
    char field[NUMBER_SIZE];
    const char *from = digits(field, number);

    cwist_jq__request_bytes(request, from, (size_t)(field + NUMBER_SIZE - from));
}

void cwist_jq__request_borrow(cwist_jq__redis_request *request, const void *data, size_t len)
{
    if (len < BORROW_FROM || request->borrowed == CWIST_JQ_REDIS_BORROWED) {
        cwist_jq__request_bytes(request, data, len);
        return;
    }
    put_count(request, '$', len);
    cwist_jq__redis_borrowed *part = &request->parts[request->borrowed++];
    part->data = data;
    part->len = len;
    part->at = request->len;
    request->borrowed_len += len;
    cwist_jq__request_raw(request, "\r\n", 2);
}

void cwist_jq__request_script(cwist_jq__redis_request *request,
                              const cwist_jq__redis_script *script, bool whole, size_t args)
{
    cwist_jq__request_command(request, whole ? "EVAL" : "EVALSHA", 2 + script->keys + args);
    if (whole) {
        cwist_jq__request_bytes(request, script->text, script->len);
    } else {
        cwist_jq__request_bytes(request, script->sha1, 40);
    }
    cwist_jq__request_number(request, script->keys);
}

const char *cwist_jq__request_name_of(const cwist_jq__redis_request *request, unsigned command)
{
    return request->names[command < CWIST_JQ_REDIS_NAMES ? command : CWIST_JQ_REDIS_NAMES - 1];
}
