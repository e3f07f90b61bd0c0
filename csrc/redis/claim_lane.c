/* Commands of a claim under way on a link of their own. */
#include <string.h>

#include "redis/claim.h"
#include "redis_scripts.gen.h"

#define ANSWER_MS 1500 /* what an answer may take beside the time that the read blocks */
#define POLL_ANSWER_MS 2500
#define STALL_MS 1000 /* no byte of a reply that has begun for so long: the server is gone */

static void build_read(cwist_jq__redis_request *request, const cwist_jq__queue *queue, size_t most,
                       uint64_t block_ms)
{
    cwist_jq__request_command(request, "XREADGROUP", block_ms != 0 ? 10 : 8);
    cwist_jq__request_text(request, "GROUP");
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, queue->consumer);
    cwist_jq__request_text(request, "COUNT");
    cwist_jq__request_number(request, most);
    if (block_ms != 0) {
        cwist_jq__request_text(request, "BLOCK");
        cwist_jq__request_number(request, block_ms);
    }
    cwist_jq__request_text(request, "STREAMS");
    cwist_jq__request_text(request, cwist_jq__redis_of(queue)->keys.stream);
    cwist_jq__request_text(request, ">");
}

static void build_lane(cwist_jq__redis_request *request, cwist_jq__queue *queue,
                       cwist_jq__redis_lane *lane)
{
    if (lane->acks != NULL) {
        cwist_jq__redis_acks_build(request, lane->acks, false);
        lane->acked = request->commands;
    }
    if (lane->tick) {
        cwist_jq__redis_tick_build(request, queue, true, lane->settle);
    }
    if (lane->reap) {
        cwist_jq__redis_reap_build(request, queue);
    }
    if (lane->read) {
        build_read(request, queue, lane->most, lane->block_ms);
    }
}

int cwist_jq__redis_lane_start(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane,
                               uint64_t deadline)
{
    cwist_jq__queue *queue = claim->queue;
    size_t sent = 0;

    cwist_jq__redis_route_get(queue, &lane->route);
    int status = cwist_jq__redis_take(&lane->link, queue->conn, &lane->route, deadline, claim);
    if (status != CWIST_SUCCESS) {
        if (status == CWIST_ERROR_IO) {
            cwist_jq__redis_route_reset(queue);
        }
        return status;
    }
    cwist_jq__request_reset(&lane->link->request);
    build_lane(&lane->link->request, queue, lane);
    lane->expected = lane->link->request.commands;
    lane->overdue =
        cwist_jq__after_ms(lane->block_ms != 0 ? lane->block_ms + ANSWER_MS : POLL_ANSWER_MS);
    status = cwist_jq__redis_link_send(lane->link, &lane->replies, deadline, &sent);
    lane->sent = sent != 0;
    if (status != CWIST_SUCCESS) {
        cwist_jq__redis_drop(queue->conn, lane->link);
        lane->link = NULL;
    }
    return status;
}

int cwist_jq__redis_lane_wait(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane,
                              uint64_t until, const cwist_jq__claim *ask)
{
    cwist_jq__conn *conn = claim->queue->conn;

    while (lane->replies.count < lane->expected) {
        int status = cwist_jq__redis_link_read(lane->link, until, ask);
        if (status == CWIST_JQ_PENDING || status == CWIST_ERROR_CLOSED ||
            status == CWIST_ERROR_INTERRUPTED) {
            return status;
        }
        if (status != CWIST_SUCCESS) {
            cwist_jq__redis_drop(conn, lane->link);
            lane->link = NULL;
            return status;
        }
    }
    lane->quiet = lane->link->quiet;
    cwist_jq__redis_give(conn, lane->link);
    lane->link = NULL;
    return CWIST_SUCCESS;
}

bool cwist_jq__redis_lane_arriving(const cwist_jq__redis_lane *lane)
{
    return lane->link != NULL && (lane->link->partial || lane->replies.count != 0) &&
           !cwist_jq__passed(cwist_jq__add_ms(lane->link->heard, STALL_MS));
}

void cwist_jq__redis_lane_close(cwist_jq__redis_lane *lane)
{
    cwist_jq__redis_link_close(lane->link);
    cwist_jq__replies_clear(&lane->replies);
    lane->link = NULL;
    lane->tick = lane->settle = lane->reap = lane->read = lane->sent = false;
    lane->acks = NULL;
    lane->block_ms = 0;
    lane->expected = lane->acked = 0;
}

const redisReply *cwist_jq__redis_lane_ticked(const cwist_jq__redis_lane *lane)
{
    return lane->replies.at[lane->acked];
}

const redisReply *cwist_jq__redis_lane_answer(const cwist_jq__redis_lane *lane)
{
    return lane->replies.at[lane->replies.count - 1];
}
