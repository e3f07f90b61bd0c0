/* The end of a claim: what is still under way is called back, and a job that came is released. */
#include "core/queue.h"
#include "redis/claim.h"

#define TICKER_MS 20
#define UNBLOCK_MS 600  /* a busy server may take so long to answer at all */
#define UNBLOCK_TRIPS 5 /* perhaps over a new link: TCP, TLS, handshake, the command */
#define ANSWER_MS 200   /* how soon after it the read's answer comes */
#define RECALL_MS 2000  /* the end of asking again */

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
        .deadline = cwist_jq__after_ms(
            UNBLOCK_MS + cwist_jq__redis_trips_ms(claim->queue->conn, UNBLOCK_TRIPS))};
    bool done = link->hello.client_id != 0 && cwist_jq__redis_try(&call) == CWIST_SUCCESS &&
                cwist_jq__redis_is_number(call.replies.at[0]);

    cwist_jq__redis_call_clear(&call);
    return done;
}

/* Waits for the answer of the read; one that has begun to arrive has until `last`. */
static int await_answer(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane, uint64_t wait_ms,
                        uint64_t last)
{
    int status = cwist_jq__redis_lane_wait(claim, lane, cwist_jq__after_ms(wait_ms), NULL);

    while (status == CWIST_JQ_PENDING && cwist_jq__redis_lane_arriving(lane) &&
           !cwist_jq__passed(last)) {
        status =
            cwist_jq__redis_lane_wait(claim, lane, cwist_jq__after_ms(CWIST_JQ_SLICE_MS), NULL);
    }
    return status;
}

/*
 * Ends the read that is under way. Closing the link instead would lose an attempt of a job that the
 * server has just given to it. UNBLOCK may overtake the read, and then does nothing: it is repeated
 * until the answer is there.
 */
static int end_read(const cwist_jq__claim *claim, cwist_jq__redis_lane *lane)
{
    const cwist_jq__conn *conn = claim->queue->conn;
    uint64_t last = cwist_jq__operation_deadline(claim->queue);
    uint64_t distance = cwist_jq__redis_trips_ms(conn, 1);
    uint64_t until = cwist_jq__earlier(
        last, cwist_jq__after_ms(RECALL_MS + cwist_jq__redis_trips_ms(conn, UNBLOCK_TRIPS)));
    int status = await_answer(claim, lane, 0, last);

    if (status == CWIST_JQ_PENDING && lane->block_ms == 0) {
        return await_answer(claim, lane, UNBLOCK_MS + distance, last);
    }
    while (status == CWIST_JQ_PENDING && !cwist_jq__passed(until)) {
        bool asked = unblock(claim, lane->link);
        status = await_answer(claim, lane, asked ? ANSWER_MS + distance : 0, last);
        if (!asked) {
            break;
        }
    }
    return status;
}

/* Calls the read back; jobs that came with it are handed back. */
static void recall(const cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;
    cwist_jq__redis_lane *lane = &state->reader;
    cwist_jq__job *jobs[CWIST_JOB_BATCH_MAX];
    size_t count = 0;
    bool empty = false;

    if (lane->read && end_read(claim, lane) == CWIST_SUCCESS &&
        cwist_jq__redis_fault_of(cwist_jq__redis_lane_answer(lane)) == CWIST_JQ_FAULT_NONE &&
        cwist_jq__redis_take_read(claim, lane, jobs, &count, &empty) == CWIST_SUCCESS) {
        cwist_jq__hand_back(claim->queue, jobs, count);
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
