/*
 * Enqueue is a plain XADD for each job, as any client may do it; jobs that need more are stored by
 * a script (store.c), in the same exchange and order. When this handle has not run the recovery for
 * a while, it goes before the first XADD in the same round trip: then a job that lapsed or came due
 * joins the queue before the new one, even while all workers are busy.
 */
#include <string.h>

#include "redis/redis.h"

#define TICK_GAP_MS 200

typedef struct {
    const cwist_job_item_t *items;
    cwist_job_stored_t *stored;
} batch;

static void build_item(cwist_jq__redis_request *request, const cwist_jq__redis_work *work,
                       size_t item, bool whole)
{
    static const char payload_name[] = "$7\r\npayload\r\n";
    const batch *all = work->input;
    const cwist_job_item_t *job = &all->items[item];
    const char *head = cwist_jq__redis_of(work->queue)->keys.xadd;

    if (cwist_jq__redis_needs_script(work->queue, job)) {
        cwist_jq__redis_store_build(request, work->queue, job, 1, whole);
        return;
    }
    if (job->header_count != 0) {
        cwist_jq__request_command(request, "XADD", 2 + cwist_jq__redis_field_count(job));
        cwist_jq__request_text(request, cwist_jq__redis_of(work->queue)->keys.stream);
        cwist_jq__request_text(request, "*");
        cwist_jq__redis_fields_build(request, job);
        return;
    }
    cwist_jq__request_name(request, "XADD");
    cwist_jq__request_raw(request, head, strlen(head));
    cwist_jq__request_text(request, job->type != NULL ? job->type : "");
    cwist_jq__request_raw(request, payload_name, sizeof payload_name - 1);
    cwist_jq__request_borrow(request, job->payload, job->len);
}

int cwist_jq__redis_take_id(const char *command, const redisReply *reply,
                            char id[CWIST_JOB_ID_SIZE])
{
    if (!cwist_jq__redis_is_text(reply) || reply->len >= CWIST_JOB_ID_SIZE) {
        return cwist_jq__redis_odd_reply(command);
    }
    memcpy(id, reply->str, reply->len + 1);
    return CWIST_SUCCESS;
}

static int take_item(const cwist_jq__redis_work *work, size_t item, const redisReply *reply,
                     bool unanswered)
{
    const batch *all = work->input;

    (void)unanswered;
    return cwist_jq__redis_needs_script(work->queue, &all->items[item])
               ? cwist_jq__redis_store_take(work->queue, reply, 1, &all->stored[item])
               : cwist_jq__redis_take_id("XADD", reply, all->stored[item].id);
}

/* A job with a dedupe key is stored once, however often it is sent. */
static bool may_repeat(const cwist_jq__redis_work *work, size_t item)
{
    const batch *all = work->input;

    return all->items[item].dedupe_key != NULL;
}

static void note_item(const cwist_jq__redis_work *work, size_t item, int code)
{
    const batch *all = work->input;

    all->stored[item].code = code;
}

/* The recovery is a favour: what goes wrong with it is no concern of the enqueue. */
bool cwist_jq__redis_tick_wanted(cwist_jq__queue *queue)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);

    cwist_jq__lock(&own->lock);
    bool denied = own->tick_denied;
    cwist_jq__unlock(&own->lock);
    return !denied && cwist_jq__redis_tick_due(queue, TICK_GAP_MS);
}

void cwist_jq__redis_tick_favour(cwist_jq__queue *queue, const redisReply *reply)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    cwist_jq__redis_ticked ticked;

    if (cwist_jq__redis_tick_read(queue, reply, &ticked) == CWIST_ERROR_DENIED) {
        cwist_jq__lock(&own->lock);
        own->tick_denied = true;
        cwist_jq__unlock(&own->lock);
    }
}

void cwist_jq__redis_note_size(cwist_jq__redis_queue *own, size_t len)
{
    size_t seen = atomic_load_explicit(&own->payload_size, memory_order_relaxed);

    len++; /* 0 stands for "none yet" */
    /* A larger one counts at once, smaller ones little by little. */
    if (len > seen || len < seen - seen / 8) {
        atomic_store_explicit(&own->payload_size, len > seen ? len : seen - seen / 64,
                              memory_order_relaxed);
    }
}

int cwist_jq__redis_check_size(cwist_jq__queue *queue, const cwist_job_item_t *item)
{
    const cwist_jq__redis_server *server = queue->conn->impl;

    if (item->len > server->payload_limit) {
        return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                              "the payload has %zu bytes; allowed at this server: %zu", item->len,
                              server->payload_limit);
    }
    return CWIST_SUCCESS;
}

int cwist_jq__redis_enqueue(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                            bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored)
{
    batch all = {items, stored};
    cwist_jq__redis_work work = {.queue = queue,
                                 .deadline = deadline,
                                 .command = "XADD",
                                 .input = &all,
                                 .build = build_item,
                                 .take = take_item,
                                 .may_repeat = may_repeat,
                                 .note = note_item};

    for (size_t i = 0; i < count; i++) {
        cwist_jq__redis_note_size(cwist_jq__redis_of(queue), items[i].len);
    }
    if (all_or_none && count > 1) {
        return cwist_jq__redis_store(queue, items, count, deadline, stored);
    }
    work.tick = cwist_jq__redis_tick_wanted(queue);
    return cwist_jq__redis_run_pieces(&work, count);
}
