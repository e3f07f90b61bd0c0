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
        const redisReply *reply = call.replies.at[0];
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

/* Entries that were deleted while pending: an entry without fields. */
static bool is_ghost(const redisReply *entry)
{
    return entry->type == REDIS_REPLY_ARRAY && entry->elements == 2 &&
           entry->element[1]->type == REDIS_REPLY_NIL;
}

static void build_clear_ghosts(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const redisReply *entries = call->input;
    size_t ghosts = 0;

    for (size_t i = 0; i < entries->elements; i++) {
        ghosts += is_ghost(entries->element[i]) ? 1 : 0;
    }
    cwist_jq__request_command(request, "XACK", 2 + ghosts);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    for (size_t i = 0; i < entries->elements; i++) {
        if (is_ghost(entries->element[i])) {
            const redisReply *id = entries->element[i]->element[0];
            cwist_jq__request_bytes(request, id->str, id->len);
        }
    }
}

/* Takes the ghosts off the pending list; when that fails, a tick does it. */
static void clear_ghosts(const cwist_jq__claim *claim, const redisReply *entries)
{
    cwist_jq__redis_call call = {
        .conn = claim->queue->conn,
        .queue = claim->queue,
        .build = build_clear_ghosts,
        .input = entries,
        .deadline =
            cwist_jq__after_ms(CWIST_JQ_SLICE_MS + cwist_jq__redis_trips_ms(claim->queue->conn, 1)),
        .claim = claim};
    (void)cwist_jq__redis_try(&call);
    cwist_jq__redis_call_clear(&call);
}

/* Makes the job of an entry. PENDING: it is a ghost. */
static int make_job(cwist_jq__queue *queue, const redisReply *entry, uint64_t lease_starts,
                    cwist_jq__job **job)
{
    const redisReply *payload = NULL;
    cwist_jq__field headers[CWIST_JOB_HEADERS_MAX];
    cwist_jq__delivery delivery;
    int status = cwist_jq__redis_parse_entry(entry, &delivery, headers, &payload);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    delivery.lease_starts = lease_starts;
    delivery.lease_ends = cwist_jq__add_ms(lease_starts, cwist_jq__lease_ms(queue));
    if (payload != NULL) {
        cwist_jq__redis_note_size(cwist_jq__redis_of(queue), payload->len);
        delivery.body = cwist_jq__replies_keep(payload);
        delivery.body_free = cwist_jq__free;
    }
    return cwist_jq__job_new(job, queue, &delivery);
}

int cwist_jq__redis_take_read(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane,
                              cwist_jq__job **jobs, size_t *count, bool *empty)
{
    const redisReply *reply = cwist_jq__redis_lane_answer(lane);
    cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);
    const redisReply *entries = NULL;
    bool ghosts = false;

    *empty = false;
    *count = 0;
    if (fault == CWIST_JQ_FAULT_NO_GROUP) {
        return cwist_jq__redis_make_group(claim);
    }
    if (fault != CWIST_JQ_FAULT_NONE) {
        return cwist_jq__redis_claim_fault(claim, &lane->route, "XREADGROUP", reply);
    }
    int status = cwist_jq__redis_parse_read(reply, lane->most, &entries);
    for (size_t i = 0; status == CWIST_SUCCESS && entries != NULL && i < entries->elements; i++) {
        status = make_job(claim->queue, entries->element[i], lane->quiet, &jobs[*count]);
        if (status == CWIST_SUCCESS) {
            ++*count;
        } else if (status == CWIST_JQ_PENDING) {
            ghosts = true;
            status = CWIST_SUCCESS;
        }
    }
    if (ghosts) {
        clear_ghosts(claim, entries);
    }
    if (*count != 0) {
        return CWIST_SUCCESS; /* entries behind a failure come back when their lease ends */
    }
    *empty = entries == NULL;
    return status == CWIST_SUCCESS ? CWIST_JQ_GO_ON : status;
}
