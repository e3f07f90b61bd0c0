/* What the answers to a claim mean: faults, a missing group, ticks, and jobs. */
#include <string.h>

#include "redis/claim.h"

int cwist_jq__redis_claim_fault(const cwist_jq__claim *claim, const cwist_jq__redis_endpoint *from,
                                const char *command, const redisReply *reply)
{
    cwist_jq__queue *queue = claim->queue;
    cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);
    int status = cwist_jq__redis_fault_fail(fault, command, reply);

    if (fault == CWIST_JQ_FAULT_MOVED) {
        cwist_jq__redis_route_follow(queue, from, reply);
    } else if (fault == CWIST_JQ_FAULT_AGAIN) {
        /* Perhaps another server is behind the name by now. */
        cwist_jq__redis_forget_links(queue->conn);
        cwist_jq__redis_route_reset(queue);
    } else if (fault == CWIST_JQ_FAULT_FULL) {
        status = CWIST_JQ_AGAIN; /* a claim is patient: somebody may repair the server */
    }
    return status;
}

/* ---- the group ---- */

static void build_group(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    cwist_jq__request_command(request, "XGROUP", 5);
    cwist_jq__request_text(request, "CREATE");
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, "0");
    cwist_jq__request_text(request, "MKSTREAM");
}

/* Whether this handle has seen the group; `now` notes that it is there. */
static bool group_seen(cwist_jq__queue *queue, bool now)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);

    cwist_jq__lock(&own->lock);
    bool seen = own->group_seen;
    own->group_seen = seen || now;
    cwist_jq__unlock(&own->lock);
    return seen;
}

int cwist_jq__redis_make_group(const cwist_jq__claim *claim)
{
    cwist_jq__queue *queue = claim->queue;
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_group,
                                 .deadline = cwist_jq__after_ms(1000),
                                 .claim = claim};
    bool seen = group_seen(queue, false); /* before another thread can see the new one */
    int status = cwist_jq__redis_try(&call);

    if (status == CWIST_SUCCESS) {
        const redisReply *reply = call.replies[0];
        if (reply->type != REDIS_REPLY_ERROR) {
            (void)group_seen(queue, true);
            if (seen) {
                cwist_jq__log(queue->conn, CWIST_JOB_LOG_WARNING,
                              "queue %s at %s: its stream or group was removed on the server and "
                              "is made again",
                              queue->name, queue->conn->url.label);
            }
            status = CWIST_JQ_GO_ON;
        } else if (strncmp(reply->str, "BUSYGROUP", 9) == 0) {
            status = CWIST_JQ_GO_ON; /* another worker was quicker */
        } else {
            status = cwist_jq__redis_claim_fault(claim, &call.route, "XGROUP CREATE", reply);
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}

/* ---- ticks ---- */

int cwist_jq__redis_take_tick(const cwist_jq__claim *claim, const cwist_jq__redis_lane *lane,
                              const redisReply *reply, bool *more)
{
    cwist_jq__queue *queue = claim->queue;
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    cwist_jq__redis_ticked ticked;
    int status = cwist_jq__redis_tick_read(queue, reply, &ticked);

    *more = false;
    switch (cwist_jq__redis_fault_of(reply)) {
    case CWIST_JQ_FAULT_NONE:
        break;
    case CWIST_JQ_FAULT_NO_SCRIPT:
        return CWIST_JQ_GO_ON;
    case CWIST_JQ_FAULT_NO_GROUP:
        return cwist_jq__redis_make_group(claim);
    default:
        return cwist_jq__redis_claim_fault(claim, &lane->route, "EVALSHA (tick)", reply);
    }
    if (status != CWIST_SUCCESS) {
        return status;
    }
    *more = ticked.more;
    (void)group_seen(queue, true);
    if (lane->settle) {
        cwist_jq__lock(&own->lock);
        own->settled = true;
        cwist_jq__unlock(&own->lock);
        if (ticked.visibility_before != 0) {
            cwist_jq__visibility_taken_over(queue, ticked.visibility_before);
        }
    }
    return CWIST_SUCCESS;
}

/* ---- reads ---- */

static void free_body(void *body)
{
    freeReplyObject(body);
}

static void build_clear_ghost(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const cwist_jq__delivery *ghost = call->input;

    cwist_jq__request_command(request, "XACK", 3);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_bytes(request, ghost->receipt, ghost->receipt_len);
}

/* Takes an entry that was deleted while pending off the list; when that fails, a tick does it. */
static void clear_ghost(const cwist_jq__claim *claim, const cwist_jq__delivery *ghost)
{
    cwist_jq__redis_call call = {
        .conn = claim->queue->conn,
        .queue = claim->queue,
        .build = build_clear_ghost,
        .input = ghost,
        .deadline =
            cwist_jq__after_ms(CWIST_JQ_SLICE_MS + cwist_jq__redis_trips_ms(claim->queue->conn, 1)),
        .claim = claim};
    (void)cwist_jq__redis_try(&call);
    cwist_jq__redis_call_clear(&call);
}

int cwist_jq__redis_take_read(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane,
                              cwist_jq__job **job, bool *empty)
{
    cwist_jq__queue *queue = claim->queue;
    cwist_jq__delivery delivery;
    redisReply *reply = lane->replies[lane->count - 1];
    cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);

    *empty = false;
    if (fault == CWIST_JQ_FAULT_NO_GROUP) {
        return cwist_jq__redis_make_group(claim);
    }
    if (fault != CWIST_JQ_FAULT_NONE) {
        return cwist_jq__redis_claim_fault(claim, &lane->route, "XREADGROUP", reply);
    }
    int status = cwist_jq__redis_parse_read(reply, &delivery);
    if (status == CWIST_JQ_PENDING) {
        *empty = delivery.receipt == NULL;
        if (!*empty) {
            clear_ghost(claim, &delivery);
        }
        return CWIST_JQ_GO_ON;
    }
    if (status != CWIST_SUCCESS) {
        return status;
    }
    delivery.lease_starts = lane->quiet;
    delivery.lease_ends = cwist_jq__add_ms(lane->quiet, cwist_jq__lease_ms(queue));
    delivery.body = reply;
    delivery.body_free = free_body;
    lane->replies[lane->count - 1] = NULL;
    return cwist_jq__job_new(job, queue, &delivery);
}
