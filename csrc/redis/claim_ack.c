/*
 * Acks and the claim's first poll in one exchange. Whatever becomes of the poll, the acks have
 * their own results: what is not known of them after the exchange is found out by asking again.
 */
#include "redis/claim.h"

/* True when the replies that are there tell of all acks. */
static bool take_acks(const cwist_jq__redis_acks *acks, const cwist_jq__redis_lane *lane,
                      int *codes)
{
    if (lane->acked == 0 || lane->replies.count < lane->acked) {
        return false;
    }
    for (unsigned i = 0; i < lane->acked; i++) {
        if (lane->replies.at[i]->type == REDIS_REPLY_ERROR) {
            cwist_jq__redis_acks_note_script(acks, false);
            return false;
        }
    }
    cwist_jq__redis_acks_note_script(acks, true);
    (void)cwist_jq__redis_acks_take(acks, lane->replies.at, false, codes);
    return true;
}

/* The poll's answers. A fault of it is a setback of the claim, which claim_wait() sees again. */
static void take_poll(const cwist_jq__claim *claim, cwist_jq__job **next, size_t *got)
{
    if (cwist_jq__redis_claim_take(claim, next, got) != CWIST_SUCCESS) {
        *got = 0;
    }
}

/* The acks with the poll. */
static void exchange(const cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                     int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got)
{
    cwist_jq__redis_claim *state = claim->impl;
    cwist_jq__redis_lane *lane = &state->reader;
    cwist_jq__redis_acks acks;

    cwist_jq__redis_acks_begin(&acks, claim->queue, jobs, count);
    cwist_jq__redis_claim_plan_poll(claim);
    lane->acks = &acks;
    int status = cwist_jq__redis_lane_start(claim, lane, deadline);
    if (status == CWIST_SUCCESS) {
        /* Not given up before it is answered: the acks are under way, and it is soon. */
        status = cwist_jq__redis_lane_wait(claim, lane, deadline, NULL);
    }
    bool sent = lane->sent;
    bool told = take_acks(&acks, lane, codes);
    if (status == CWIST_SUCCESS) {
        take_poll(claim, next, got);
    }
    lane->acks = NULL;
    if (status == CWIST_JQ_PENDING) {
        state->limit = 0; /* jobs may be on their way: the claim waits for them anew */
    } else {
        cwist_jq__redis_lane_close(lane);
    }
    if (!told) {
        (void)cwist_jq__redis_ack_again(claim->queue, jobs, count, sent, deadline, codes);
    }
}

int cwist_jq__redis_ack_and_poll(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                                 int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got)
{
    *got = 0;
    if (!cwist_jq__redis_claim_may_read(claim)) { /* the claim sets up its queue by itself first */
        (void)cwist_jq__redis_ack(claim->queue, jobs, count, deadline, codes);
        return CWIST_SUCCESS;
    }
    cwist_jq__redis_claim_limit(claim);
    exchange(claim, jobs, count, codes, deadline, next, got);
    return CWIST_SUCCESS;
}
