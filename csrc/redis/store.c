/*
 * Jobs that a script stores: those with a delay, a dedupe key or a limit on the queue's length, and
 * batches of all or none, which are one step of the server.
 */
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

/* All arguments stand in the server's memory at once, and again in the script's. */
#define STORE_BYTES ((size_t)64 * 1024 * 1024)

typedef struct {
    const cwist_job_item_t *items;
    size_t count;
} batch;

static bool is_keyed(const cwist_job_item_t *item)
{
    return item->dedupe_key != NULL;
}

bool cwist_jq__redis_needs_script(const cwist_jq__queue *queue, const cwist_job_item_t *item)
{
    return item->delay_ms != 0 || is_keyed(item) || queue->max_length != 0;
}

/* ---- the fields of a job ---- */

size_t cwist_jq__redis_field_count(const cwist_job_item_t *item)
{
    return 4 + (is_keyed(item) ? 2u : 0u) + 2 * item->header_count;
}

static void build_header(cwist_jq__redis_request *request, const cwist_job_header_t *header)
{
    char name[sizeof CWIST_JQ_REDIS_HEADER + CWIST_JQ_HEADER_NAME_MAX] = CWIST_JQ_REDIS_HEADER;
    size_t prefix = sizeof CWIST_JQ_REDIS_HEADER - 1;
    size_t len = strlen(header->name);

    memcpy(name + prefix, header->name, len);
    cwist_jq__request_bytes(request, name, prefix + len);
    cwist_jq__request_text(request, header->value);
}

void cwist_jq__redis_fields_build(cwist_jq__redis_request *request, const cwist_job_item_t *item)
{
    cwist_jq__request_text(request, "type");
    cwist_jq__request_text(request, item->type != NULL ? item->type : "");
    cwist_jq__request_text(request, "payload");
    cwist_jq__request_borrow(request, item->payload, item->len);
    if (is_keyed(item)) {
        cwist_jq__request_text(request, CWIST_JQ_REDIS_KEY_FIELD);
        cwist_jq__request_text(request, item->dedupe_key);
    }
    for (size_t i = 0; i < item->header_count; i++) {
        build_header(request, &item->headers[i]);
    }
}

/* ---- the script ---- */

void cwist_jq__redis_store_build(cwist_jq__redis_request *request, const cwist_jq__queue *queue,
                                 const cwist_job_item_t *items, size_t count, bool whole)
{
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(queue)->keys;
    size_t args = 1;

    for (size_t i = 0; i < count; i++) {
        args += 3 + cwist_jq__redis_field_count(&items[i]);
    }
    cwist_jq__request_script(request, &cwist_jq__redis_script_store, whole, args);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->delay);
    cwist_jq__request_text(request, keys->wait);
    cwist_jq__request_text(request, keys->dedupe);
    cwist_jq__request_number(request, queue->max_length);
    for (size_t i = 0; i < count; i++) {
        cwist_jq__request_number(request, items[i].delay_ms);
        cwist_jq__request_text(request, is_keyed(&items[i]) ? items[i].dedupe_key : "");
        cwist_jq__request_number(request, cwist_jq__redis_field_count(&items[i]));
        cwist_jq__redis_fields_build(request, &items[i]);
    }
}

int cwist_jq__redis_store_take(const cwist_jq__queue *queue, const redisReply *reply, size_t count,
                               cwist_job_stored_t *stored)
{
    static const char command[] = "EVALSHA (store)";
    int status = CWIST_SUCCESS;

    if (cwist_jq__redis_is_number(reply) && reply->integer == 0) {
        return cwist_jq__fail(
            CWIST_ERROR_FULL,
            "the queue is full: it may hold %llu jobs, ready, delayed and claimed",
            (unsigned long long)queue->max_length);
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 * count) {
        return cwist_jq__redis_odd_reply(command);
    }
    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        const redisReply *twin = reply->element[2 * i + 1];
        status = cwist_jq__redis_is_number(twin)
                     ? cwist_jq__redis_take_id(command, reply->element[2 * i], stored[i].id)
                     : cwist_jq__redis_odd_reply(command);
        stored[i].duplicate = status == CWIST_SUCCESS && twin->integer != 0;
    }
    return status;
}

/* ---- all or none ---- */

static void build_store(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const batch *all = call->input;

    if (call->skip != 0) {
        cwist_jq__redis_tick_build(request, call->queue, false, false);
    }
    cwist_jq__redis_store_build(request, call->queue, all->items, all->count, call->whole);
}

static size_t size_of(const cwist_job_item_t *item)
{
    size_t size = item->len;

    for (size_t i = 0; i < item->header_count; i++) {
        size += strlen(item->headers[i].name) + strlen(item->headers[i].value);
    }
    return size;
}

static int check_total(const cwist_job_item_t *items, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total = items[i].len > STORE_BYTES ? STORE_BYTES + 1 : total + size_of(&items[i]);
        if (total > STORE_BYTES) {
            return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                                  "payloads and headers together have more bytes than one step "
                                  "takes; allowed: %zu",
                                  STORE_BYTES);
        }
    }
    return CWIST_SUCCESS;
}

/* When every job has a key, the repeat finds those that were stored. */
static bool all_keyed(const cwist_job_item_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_keyed(&items[i])) {
            return false;
        }
    }
    return true;
}

int cwist_jq__redis_store(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                          uint64_t deadline, cwist_job_stored_t *stored)
{
    batch all = {items, count};
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_store,
                                 .input = &all,
                                 .deadline = deadline,
                                 .repeatable = all_keyed(items, count)};
    int status = check_total(items, count);

    if (status == CWIST_SUCCESS) {
        call.skip = cwist_jq__redis_tick_wanted(queue) ? 1 : 0;
        status = cwist_jq__redis_run(&call);
    }
    if (status == CWIST_SUCCESS) {
        if (call.skip != 0) {
            cwist_jq__redis_tick_favour(queue, call.replies.at[0]);
        }
        status = cwist_jq__redis_store_take(queue, call.replies.at[call.skip], count, stored);
    }
    for (size_t i = 0; i < count; i++) {
        stored[i].code = status;
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}
