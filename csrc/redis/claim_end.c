/* The end of a claim: what is still under way is called back, and a job that came is released. */
#include "redis/claim.h"

#define TICKER_MS 20
#define RECALL_MS 200

static void build_unblock(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const uint64_t *client_id = call->input;

    cwist_jq__request_command(request, "CLIENT", 2);
    cwist_jq__request_text(request, "UNBLOCK");
    cwist_jq__request_number(request, *client_id);
}

/* Asks the server to end the blocked read. False when it cannot be asked. */
static bool unblock(const cwist_jq__claim *claim, const cwist_jq__redis_link *link)
{
    cwist_jq__redis_call call = {
        .conn = claim->queue->conn,
        .queue = claim->queue,
        .build = build_unblock,
        .input = &link->hello.client_id,
        .deadline = cwist_jq__after_ms(CWIST_JQ_SLICE_MS +
                                       cwist_jq__redis_trips_ms(claim->queue->conn, 1))};
    bool done = link->hello.client_id != 0 && cwist_jq__redis_try(&call) == CWIST_SUCCESS &&
                cwist_jq__redis_is_number(call.replies[0]);

    cwist_jq__redis_call_clear(&call);
    return done;
}

/* Ends the read that is under way; a job that came with it is handed back. */
static void recall(const cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;
    cwist_jq__redis_lane *lane = &state->reader;
    cwist_jq__job *job = NULL;
    bool empty = false;
    int status = cwist_jq__redis_lane_wait(claim, lane, 0, NULL);

    if (status == CWIST_JQ_PENDING && (lane->block_ms == 0 || unblock(claim, lane->link))) {
        uint64_t distance = cwist_jq__redis_trips_ms(claim->queue->conn, 1);
        status =
            cwist_jq__redis_lane_wait(claim, lane, cwist_jq__after_ms(RECALL_MS + distance), NULL);
    }
    if (status == CWIST_SUCCESS && lane->read &&
        cwist_jq__redis_fault_of(lane->replies[lane->count - 1]) == CWIST_JQ_FAULT_NONE &&
        cwist_jq__redis_take_read(claim, lane, &job, &empty) == CWIST_SUCCESS) {
        cwist_jq__hand_back(claim->queue, &job, 1);
    }
}

void cwist_jq__redis_claim_end(cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;

    if (state->ticker.link != NULL) {
        (void)cwist_jq__redis_lane_wait(claim, &state->ticker, cwist_jq__after_ms(TICKER_MS), NULL);
    }
    if (state->reader.link != NULL) {
        recall(claim);
    }
    cwist_jq__redis_lane_close(&state->ticker);
    cwist_jq__redis_lane_close(&state->reader);
    cwist_jq__free(state);
    claim->impl = NULL;
}
