/*
 * Enqueue is a plain XADD, as any client may do it. When this handle has not run the recovery for
 * a while, it goes before the XADD in the same round trip: then a job that lapsed or came due joins
 * the queue before the new one, even while all workers are busy.
 */
#include <string.h>

#include "redis/redis.h"

#define TICK_GAP_MS 200

typedef struct {
    const void *payload;
    size_t len;
    const char *type;
} job_input;

static void build_enqueue(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const job_input *job = call->input;

    if (call->skip != 0) {
        cwist_jq__redis_tick_build(request, call->queue, false, false);
    }
    cwist_jq__request_command(request, "XADD", 6);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    cwist_jq__request_text(request, "*");
    cwist_jq__request_text(request, "type");
    cwist_jq__request_text(request, job->type != NULL ? job->type : "");
    cwist_jq__request_text(request, "payload");
    cwist_jq__request_borrow(request, job->payload, job->len);
}

/* The recovery is a favour: what goes wrong with it is no concern of the enqueue. */
static bool tick_wanted(cwist_jq__queue *queue)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);

    cwist_jq__lock(&own->lock);
    bool denied = own->tick_denied;
    cwist_jq__unlock(&own->lock);
    return !denied && cwist_jq__redis_tick_due(queue, TICK_GAP_MS);
}

static void take_tick(cwist_jq__queue *queue, const redisReply *reply)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    cwist_jq__redis_ticked ticked;

    if (cwist_jq__redis_tick_read(queue, reply, &ticked) == CWIST_ERROR_DENIED) {
        cwist_jq__lock(&own->lock);
        own->tick_denied = true;
        cwist_jq__unlock(&own->lock);
    }
}

int cwist_jq__redis_enqueue(cwist_jq__queue *queue, const void *payload, size_t len,
                            const char *type, uint64_t deadline, char *id)
{
    const cwist_jq__redis_server *server = queue->conn->impl;
    job_input job = {payload, len, type};
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_enqueue,
                                 .input = &job,
                                 .deadline = deadline};

    if (len > server->payload_limit) {
        return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                              "the payload has %zu bytes; allowed at this server: %zu", len,
                              server->payload_limit);
    }
    call.skip = tick_wanted(queue) ? 1 : 0;
    int status = cwist_jq__redis_run(&call);
    if (status == CWIST_SUCCESS) {
        const redisReply *reply = call.replies[call.skip];
        if (call.skip != 0) {
            take_tick(queue, call.replies[0]);
        }
        if (cwist_jq__redis_is_text(reply) && reply->len < CWIST_JOB_ID_SIZE) {
            memcpy(id, reply->str, reply->len + 1);
        } else {
            status = cwist_jq__redis_odd_reply("XADD");
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}
