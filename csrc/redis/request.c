/* Commands in the Redis protocol, written by hand: counts, lengths and bytes, no format strings. */
#include <stdio.h>
#include <string.h>

#include "redis/redis.h"

#define BORROW_FROM 16384 /* copying less costs less than another send */

void cwist_jq__request_clear(cwist_jq__redis_request *request)
{
    cwist_jq__free(request->data);
    memset(request, 0, sizeof *request);
}

/* Makes room for more bytes. */
static bool reserve(cwist_jq__redis_request *request, size_t more)
{
    if (request->failed || more > SIZE_MAX / 2 - request->len) {
        request->failed = true;
        return false;
    }
    size_t need = request->len + more;
    if (need <= request->cap) {
        return true;
    }
    size_t cap = need < 256 ? 512 : need * 2;
    char *data = cwist_jq__realloc(request->data, cap);
    if (data == NULL) {
        request->failed = true;
        return false;
    }
    request->data = data;
    request->cap = cap;
    return true;
}

static void put(cwist_jq__redis_request *request, const void *data, size_t len)
{
    if (reserve(request, len) && len != 0) {
        memcpy(request->data + request->len, data, len);
        request->len += len;
    }
}

/* A line like "$12\r\n". */
static void put_count(cwist_jq__redis_request *request, char sign, size_t count)
{
    char line[32];
    int len = snprintf(line, sizeof line, "%c%zu\r\n", sign, count);
    put(request, line, (size_t)len);
}

void cwist_jq__request_command(cwist_jq__redis_request *request, const char *name, size_t args)
{
    if (request->commands == CWIST_JQ_REDIS_PIPELINE) {
        request->failed = true;
        return;
    }
    request->names[request->commands++] = name;
    put_count(request, '*', args + 1);
    cwist_jq__request_text(request, name);
}

void cwist_jq__request_bytes(cwist_jq__redis_request *request, const void *data, size_t len)
{
    put_count(request, '$', len);
    put(request, data, len);
    put(request, "\r\n", 2);
}

void cwist_jq__request_text(cwist_jq__redis_request *request, const char *text)
{
    cwist_jq__request_bytes(request, text, strlen(text));
}

void cwist_jq__request_number(cwist_jq__redis_request *request, uint64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    cwist_jq__request_bytes(request, text, (size_t)len);
}

void cwist_jq__request_borrow(cwist_jq__redis_request *request, const void *data, size_t len)
{
    if (len < BORROW_FROM || request->borrowed != NULL) {
        cwist_jq__request_bytes(request, data, len);
        return;
    }
    put_count(request, '$', len);
    request->borrowed = data;
    request->borrowed_len = len;
    request->borrowed_at = request->len;
    put(request, "\r\n", 2);
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
