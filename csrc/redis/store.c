/* Jobs that are stored all or none: one script, so one step of the server. */
#include "redis/redis.h"
#include "redis_scripts.gen.h"

/* All arguments stand in the server's memory at once, and again in the script's. */
#define STORE_BYTES ((size_t)64 * 1024 * 1024)

typedef struct {
    const cwist_job_item_t *items;
    size_t count;
} batch;

static void build_store(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const batch *all = call->input;

    if (call->skip != 0) {
        cwist_jq__redis_tick_build(request, call->queue, false, false);
    }
    cwist_jq__request_script(request, &cwist_jq__redis_script_store, call->whole, 2 * all->count);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    for (size_t i = 0; i < all->count; i++) {
        const cwist_job_item_t *job = &all->items[i];
        cwist_jq__request_text(request, job->type != NULL ? job->type : "");
        cwist_jq__request_borrow(request, job->payload, job->len);
    }
}

static int take_ids(const redisReply *reply, size_t count, cwist_job_stored_t *stored)
{
    int status = reply->type == REDIS_REPLY_ARRAY && reply->elements == count
                     ? CWIST_SUCCESS
                     : cwist_jq__redis_odd_reply("EVALSHA (store)");

    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        status = cwist_jq__redis_take_id(reply->element[i], stored[i].id);
    }
    return status;
}

static int check_total(const cwist_job_item_t *items, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total = items[i].len > STORE_BYTES ? STORE_BYTES + 1 : total + items[i].len;
        if (total > STORE_BYTES) {
            return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                                  "the payloads together have more bytes than one step takes; "
                                  "allowed: %zu",
                                  STORE_BYTES);
        }
    }
    return CWIST_SUCCESS;
}

int cwist_jq__redis_store(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                          uint64_t deadline, cwist_job_stored_t *stored)
{
    batch all = {items, count};
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_store,
                                 .input = &all,
                                 .deadline = deadline};
    int status = check_total(items, count);

    if (status == CWIST_SUCCESS) {
        call.skip = cwist_jq__redis_tick_wanted(queue) ? 1 : 0;
        status = cwist_jq__redis_run(&call);
    }
    if (status == CWIST_SUCCESS) {
        if (call.skip != 0) {
            cwist_jq__redis_tick_favour(queue, call.replies.at[0]);
        }
        status = take_ids(call.replies.at[call.skip], count, stored);
    }
    for (size_t i = 0; i < count; i++) {
        stored[i].code = status;
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}
