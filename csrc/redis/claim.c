/*
 * A claim, step by step. It reads without blocking first, together with a tick when none was sent
 * lately; an empty read counts only when a tick has just left nothing to do. Then it blocks on the
 * server, a second at most at a time, and ticks on the other lane. The tick also says whether
 * claims are paused: then it does not read, and hands back what a read under way still brings.
 * Every wait is short, so that a closed or interrupted claim ends soon, and nothing that is under
 * way is lost between slices.
 */
#include <string.h>

#include "redis/claim.h"

#define TICK_GAP_MS 100
#define BLOCK_MS 1000
#define BLOCK_EARLY_MS 100 /* the server ends a block up to 100 ms late */
#define LAST_POLL_MS 30    /* less is left: sleep, and poll once at the deadline */
#define GRACE_MS 150       /* how long after the deadline an answer is waited for */
#define POLL_GRACE_MS 500  /* the same for a claim that was to poll only */
#define CONNECT_FIRST_MS 250
#define CONNECT_OVERRUN_MS 140
#define REPORT_MS 1000
#define READ_BYTES ((size_t)64 * 1024 * 1024)
#define FIRST_READ 16 /* entries, when no size is known */
/* What a server far away is given besides, in round trips. */
#define GRACE_TRIPS 3
#define POLL_TRIPS 6
#define CONNECT_TRIPS 4

int cwist_jq__redis_claim_start(cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = cwist_jq__calloc(1, sizeof *state);

    if (state == NULL) {
        return cwist_jq__no_memory();
    }
    claim->impl = state;
    return CWIST_SUCCESS;
}

/* ---- setbacks ---- */

static void remember(cwist_jq__redis_claim *state, int status)
{
    state->error = status == CWIST_JQ_AGAIN ? CWIST_ERROR_REFUSED : status;
    cwist_jq__redis_keep_text(state->error_text);
}

static int tell(const cwist_jq__redis_claim *state)
{
    return cwist_jq__fail(state->error, "%s", state->error_text);
}

/* The deadline came: a server that could not be used lately is the news, else that no job came. */
static int finish(const cwist_jq__redis_claim *state)
{
    return state->error != 0 ? tell(state)
                             : cwist_jq__fail(CWIST_ERROR_TIMEOUT, "no job came in time");
}

/* Something failed, its text is set: try again later, or tell it. */
static int set_back(const cwist_jq__claim *claim, int status)
{
    cwist_jq__redis_claim *state = claim->impl;

    switch (status) {
    case CWIST_JQ_GO_ON:
    case CWIST_ERROR_NOMEM:
    case CWIST_ERROR_CLOSED:
    case CWIST_ERROR_INTERRUPTED:
        return status;
    case CWIST_ERROR_IO:
    case CWIST_JQ_AGAIN:
        /* A try that the deadline cut short says less than a refusal before it. */
        if (status != CWIST_ERROR_IO || state->error != CWIST_ERROR_REFUSED ||
            !cwist_jq__passed(claim->deadline)) {
            remember(state, status);
        }
        state->fresh = false;
        if (cwist_jq__passed(claim->deadline)) {
            return tell(state);
        }
        state->retry_at = cwist_jq__backoff_next(&state->backoff, claim->deadline);
        return CWIST_JQ_GO_ON;
    default:
        remember(state, status);
        state->fatal = true;
        state->report_at = cwist_jq__earlier(claim->deadline, cwist_jq__after_ms(REPORT_MS));
        return CWIST_JQ_GO_ON;
    }
}

/* Sleeps until `when` or the end of the slice. GO_ON when it is `when`. */
static int pause_until(const cwist_jq__claim *claim, uint64_t when, uint64_t until)
{
    int status = cwist_jq__claim_pause(claim, cwist_jq__earlier(when, until));

    if (status != CWIST_SUCCESS) {
        return status;
    }
    return cwist_jq__passed(when) ? CWIST_JQ_GO_ON : CWIST_JQ_PENDING;
}

/* The group was made again; when that happens all the time, slowly. */
static void pace_regrouping(const cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;

    if (++state->regroups > 3) {
        state->retry_at = cwist_jq__backoff_next(&state->backoff, claim->deadline);
    }
}

/* ---- answers ---- */

/* A job is found: the next wait on this claim, if any, starts afresh. */
static void start_over(cwist_jq__redis_claim *state)
{
    state->fresh = false;
    state->tick_next = false;
    state->polled_last = false;
    state->limit = 0;
    state->error = 0;
    state->regroups = 0;
    memset(&state->backoff, 0, sizeof state->backoff);
}

/* The server answered, and well. */
static void went_well(cwist_jq__redis_claim *state)
{
    state->error = 0;
    state->regroups = 0;
    memset(&state->backoff, 0, sizeof state->backoff);
}

static bool is_paused(const cwist_jq__claim *claim)
{
    return atomic_load_explicit(&cwist_jq__redis_of(claim->queue)->paused, memory_order_relaxed);
}

/* The reader's replies are there. */
int cwist_jq__redis_claim_take(const cwist_jq__claim *claim, cwist_jq__job **jobs, size_t *count)
{
    cwist_jq__redis_claim *state = claim->impl;
    cwist_jq__redis_lane *lane = &state->reader;
    bool more = false;
    bool empty = false;
    int ticked = CWIST_SUCCESS;
    int status = CWIST_JQ_GO_ON;

    if (lane->read) {
        status = cwist_jq__redis_take_read(claim, lane, jobs, count, &empty);
    }
    if (status == CWIST_SUCCESS) {
        /* A tick that failed beside a job is told by a later one. */
        if (lane->tick) {
            (void)cwist_jq__redis_take_tick(claim, lane, cwist_jq__redis_lane_ticked(lane), &more);
        }
        if (is_paused(claim)) {
            cwist_jq__hand_back(claim->queue, jobs, *count);
            *count = 0;
            state->fresh = false;
            went_well(state);
            return CWIST_JQ_GO_ON;
        }
        start_over(state);
        return status;
    }
    if (status == CWIST_JQ_GO_ON && lane->tick) {
        ticked = cwist_jq__redis_take_tick(claim, lane, cwist_jq__redis_lane_ticked(lane), &more);
    }
    if (ticked != CWIST_SUCCESS && ticked != CWIST_JQ_GO_ON) {
        return ticked;
    }
    if (status == CWIST_JQ_GO_ON && empty) {
        bool ticked_well = lane->tick && ticked == CWIST_SUCCESS && !more;
        state->fresh = state->fresh || ticked_well;
        state->tick_next = !state->fresh;
        if (ticked == CWIST_SUCCESS) {
            went_well(state);
        }
    } else if (status == CWIST_JQ_GO_ON && lane->read) {
        state->fresh = false;
        pace_regrouping(claim);
    } else if (status == CWIST_JQ_GO_ON && ticked == CWIST_JQ_GO_ON) {
        pace_regrouping(claim);
    } else if (status == CWIST_JQ_GO_ON) {
        went_well(state);
    }
    return status;
}

/* ---- the reader ---- */

static uint64_t connect_deadline(const cwist_jq__claim *claim, uint64_t until)
{
    const cwist_jq__redis_claim *state = claim->impl;
    unsigned tries = state->backoff.tries < 4 ? state->backoff.tries : 4;
    uint64_t now = cwist_jq__now();
    uint64_t distance = cwist_jq__redis_trips_ms(claim->queue->conn, CONNECT_TRIPS);
    uint64_t most = cwist_jq__add_ms(now, ((uint64_t)CONNECT_FIRST_MS << tries) + distance);
    uint64_t slice = cwist_jq__add_ms(until > now ? until : now, CONNECT_OVERRUN_MS + distance);

    if (cwist_jq__passed(claim->deadline)) {
        slice = state->limit;
    }
    return cwist_jq__earlier(cwist_jq__earlier(most, slice), state->limit);
}

bool cwist_jq__redis_claim_may_read(const cwist_jq__claim *claim)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(claim->queue);

    cwist_jq__lock(&own->lock);
    bool settled = own->settled;
    own->has_read = settled;
    cwist_jq__unlock(&own->lock);
    return settled;
}

/* The size of the jobs that came lately; 0: none came yet. */
static size_t size_of_late(const cwist_jq__claim *claim)
{
    return atomic_load_explicit(&cwist_jq__redis_of(claim->queue)->payload_size,
                                memory_order_relaxed);
}

/* As many as the claim may bring, if jobs of that size do not need too much memory. */
static size_t count_to_ask(const cwist_jq__claim *claim)
{
    size_t size = size_of_late(claim);
    size_t fit = size == 0 ? FIRST_READ : READ_BYTES / size;

    return fit < 1 ? 1 : fit < claim->most ? fit : claim->most;
}

void cwist_jq__redis_claim_plan_poll(const cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;
    cwist_jq__redis_lane *lane = &state->reader;

    lane->read = !is_paused(claim);
    lane->most = count_to_ask(claim);
    lane->tick = cwist_jq__redis_tick_due(claim->queue, TICK_GAP_MS);
    if (!lane->tick && (state->tick_next || !lane->read)) {
        lane->tick = true;
        cwist_jq__redis_tick_begun(claim->queue);
    }
    state->polled_last = cwist_jq__passed(claim->deadline);
}

/* Decides what the reader sends next. GO_ON: send it. */
static int plan_read(const cwist_jq__claim *claim, uint64_t until)
{
    cwist_jq__redis_claim *state = claim->impl;
    cwist_jq__redis_lane *lane = &state->reader;
    bool over = cwist_jq__passed(claim->deadline);
    uint64_t left = cwist_jq__ms_left(claim->deadline);

    if ((over && state->polled_last && state->fresh) || cwist_jq__passed(state->limit)) {
        return finish(state);
    }
    if (!cwist_jq__redis_claim_may_read(claim)) {
        /* Before a job is handed out, alone: an error here must not meet a claimed job. */
        lane->tick = lane->settle = true;
        cwist_jq__redis_tick_begun(claim->queue);
        return CWIST_JQ_GO_ON;
    }
    if (is_paused(claim)) {
        lane->tick = true; /* wait_paused() said that it is time */
        state->fresh = false;
        state->polled_last = over;
        return CWIST_JQ_GO_ON;
    }
    if (state->fresh && !over && left <= LAST_POLL_MS) {
        int status = pause_until(claim, claim->deadline, until);
        if (status != CWIST_JQ_GO_ON) {
            return status;
        }
        over = true;
    }
    if (state->fresh && !over) {
        lane->read = true;
        lane->most = count_to_ask(claim);
        left = left > BLOCK_EARLY_MS ? left - BLOCK_EARLY_MS : 1;
        lane->block_ms = left < BLOCK_MS ? left : BLOCK_MS;
        return CWIST_JQ_GO_ON;
    }
    cwist_jq__redis_claim_plan_poll(claim);
    return CWIST_JQ_GO_ON;
}

/*
 * Claims are paused: waits for the time of the next tick, and sends a last one at the deadline.
 * SUCCESS: send it.
 */
static int wait_paused(const cwist_jq__claim *claim, uint64_t until)
{
    const cwist_jq__redis_claim *state = claim->impl;

    if (cwist_jq__passed(claim->deadline)) {
        return state->polled_last ? finish(state) : CWIST_SUCCESS;
    }
    if (cwist_jq__redis_tick_now(claim->queue)) {
        return CWIST_SUCCESS;
    }
    uint64_t tick = cwist_jq__redis_tick_time(claim->queue);
    return pause_until(claim, cwist_jq__earlier(tick, claim->deadline), until);
}

static int send_read(const cwist_jq__claim *claim, uint64_t until)
{
    cwist_jq__redis_claim *state = claim->impl;

    cwist_jq__redis_lane_close(&state->reader);
    int status = plan_read(claim, until);
    if (status == CWIST_JQ_GO_ON) {
        status = cwist_jq__redis_lane_start(claim, &state->reader, connect_deadline(claim, until));
        status = status == CWIST_SUCCESS ? CWIST_JQ_GO_ON : set_back(claim, status);
    }
    return status;
}

/* Starts the tick beside a blocked read when it is time. */
static void start_ticker(const cwist_jq__claim *claim, uint64_t until)
{
    cwist_jq__redis_claim *state = claim->impl;

    if (state->reader.block_ms == 0 || state->ticker.link != NULL ||
        !cwist_jq__passed(state->tick_at) || cwist_jq__passed(claim->deadline) ||
        !cwist_jq__redis_tick_now(claim->queue)) {
        return;
    }
    cwist_jq__redis_lane_close(&state->ticker);
    state->ticker.tick = true;
    state->ticker.reap = cwist_jq__redis_reap_due(claim->queue);
    if (cwist_jq__redis_lane_start(claim, &state->ticker, connect_deadline(claim, until)) !=
        CWIST_SUCCESS) {
        /* When the server is gone the reader will tell. */
        state->tick_at = cwist_jq__backoff_next(&state->tick_backoff, CWIST_JQ_NEVER);
    }
}

/* When to look up from waiting for the reader. */
static uint64_t wake_time(const cwist_jq__claim *claim, uint64_t until)
{
    const cwist_jq__redis_claim *state = claim->impl;
    uint64_t wake = cwist_jq__after_ms(CWIST_JQ_SLICE_MS);

    if (state->ticker.link != NULL) {
        return 0;
    }
    if (cwist_jq__redis_lane_arriving(&state->reader)) {
        return cwist_jq__passed(until) ? wake : cwist_jq__earlier(wake, until);
    }
    if (cwist_jq__passed(claim->deadline)) {
        return cwist_jq__earlier(wake, state->limit);
    }
    wake = cwist_jq__earlier(wake, cwist_jq__earlier(until, claim->deadline));
    if (state->reader.block_ms != 0) {
        uint64_t tick = cwist_jq__redis_tick_time(claim->queue);
        wake = cwist_jq__earlier(wake, tick > state->tick_at ? tick : state->tick_at);
    }
    return cwist_jq__earlier(wake, state->reader.overdue);
}

static int wait_reader(const cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs,
                       size_t *count)
{
    cwist_jq__redis_claim *state = claim->impl;
    int status = cwist_jq__redis_lane_wait(claim, &state->reader, wake_time(claim, until), claim);

    if (status == CWIST_SUCCESS) {
        status = cwist_jq__redis_claim_take(claim, jobs, count);
        return status == CWIST_SUCCESS ? status : set_back(claim, status);
    }
    if (status != CWIST_JQ_PENDING) {
        return set_back(claim, status);
    }
    bool arriving = cwist_jq__redis_lane_arriving(&state->reader);
    if (!arriving && (cwist_jq__passed(state->limit) || cwist_jq__passed(state->reader.overdue))) {
        cwist_jq__redis_lane_close(&state->reader);
        return set_back(claim, cwist_jq__fail(CWIST_ERROR_IO, "the server does not answer"));
    }
    start_ticker(claim, until);
    if (cwist_jq__passed(until) && (arriving || !cwist_jq__passed(claim->deadline))) {
        return CWIST_JQ_PENDING;
    }
    return CWIST_JQ_GO_ON;
}

/* ---- the ticker ---- */

/* The tick's answer is there. SUCCESS: the reader may go on as it is. */
static int take_tick(const cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;
    const redisReply *reply = cwist_jq__redis_lane_ticked(&state->ticker);
    bool group_gone = cwist_jq__redis_fault_of(reply) == CWIST_JQ_FAULT_NO_GROUP;
    bool full = cwist_jq__redis_fault_of(reply) == CWIST_JQ_FAULT_FULL;
    bool more = false;
    int status = cwist_jq__redis_take_tick(claim, &state->ticker, reply, &more);

    if (status == CWIST_SUCCESS) {
        state->error = 0;
        memset(&state->tick_backoff, 0, sizeof state->tick_backoff);
    } else if (status == CWIST_JQ_GO_ON && group_gone) {
        /* Redis 6.2 leaves a reader blocked on the group that is gone: it must ask anew. */
        cwist_jq__redis_lane_close(&state->reader);
        state->fresh = false;
        pace_regrouping(claim);
    } else if (status == CWIST_JQ_AGAIN && full) {
        remember(state, status);
        state->tick_at = cwist_jq__backoff_next(&state->tick_backoff, CWIST_JQ_NEVER);
        status = CWIST_SUCCESS;
    } else if (status != CWIST_JQ_GO_ON) {
        cwist_jq__redis_lane_close(&state->reader);
    }
    return status == CWIST_JQ_GO_ON ? CWIST_SUCCESS : status;
}

static int wait_ticker(const cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;
    int status = cwist_jq__redis_lane_wait(claim, &state->ticker, cwist_jq__after_ms(10), claim);

    switch (status) {
    case CWIST_SUCCESS:
        status = take_tick(claim);
        cwist_jq__redis_lane_close(&state->ticker);
        break;
    case CWIST_JQ_PENDING:
        status = CWIST_SUCCESS;
        if (cwist_jq__passed(state->ticker.overdue)) {
            cwist_jq__redis_lane_close(&state->ticker);
            state->tick_at = cwist_jq__backoff_next(&state->tick_backoff, CWIST_JQ_NEVER);
        }
        break;
    case CWIST_ERROR_IO:
        status = CWIST_SUCCESS;
        state->tick_at = cwist_jq__backoff_next(&state->tick_backoff, CWIST_JQ_NEVER);
        break;
    default:
        break;
    }
    return status;
}

/* ---- a claim ---- */

static int step(const cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs, size_t *count)
{
    cwist_jq__redis_claim *state = claim->impl;
    int status = CWIST_SUCCESS;

    if (state->fatal) {
        status = pause_until(claim, state->report_at, until);
        return status == CWIST_JQ_GO_ON ? tell(state) : status;
    }
    if (!cwist_jq__passed(state->retry_at)) {
        return pause_until(claim, state->retry_at, until);
    }
    if (state->ticker.link != NULL) {
        status = wait_ticker(claim);
        if (status != CWIST_SUCCESS) {
            return set_back(claim, status);
        }
    }
    if (state->reader.link != NULL) {
        return wait_reader(claim, until, jobs, count);
    }
    if (is_paused(claim)) {
        status = wait_paused(claim, until);
    }
    return status == CWIST_SUCCESS ? send_read(claim, until) : status;
}

void cwist_jq__redis_claim_limit(const cwist_jq__claim *claim)
{
    cwist_jq__redis_claim *state = claim->impl;
    const cwist_jq__conn *conn = claim->queue->conn;

    if (state->limit == 0) {
        state->limit =
            cwist_jq__passed(claim->deadline)
                ? cwist_jq__after_ms(POLL_GRACE_MS + cwist_jq__redis_trips_ms(conn, POLL_TRIPS))
                : cwist_jq__add_ms(claim->deadline,
                                   GRACE_MS + cwist_jq__redis_trips_ms(conn, GRACE_TRIPS));
    }
}

/*
 * The first read of a handle brought all that it dared to ask for: now that a size is known, the
 * rest is asked for. What is not answered soon is left to the end of the claim.
 */
static void read_rest(const cwist_jq__claim *claim, cwist_jq__job **jobs, size_t *count)
{
    cwist_jq__redis_claim *state = claim->impl;
    cwist_jq__redis_lane *lane = &state->reader;
    uint64_t until = cwist_jq__after_ms(POLL_GRACE_MS +
                                        cwist_jq__redis_trips_ms(claim->queue->conn, POLL_TRIPS));
    size_t fit = count_to_ask(claim);
    size_t more = 0;
    bool empty = false;

    cwist_jq__redis_lane_close(lane);
    lane->read = true;
    lane->most = fit < claim->most - *count ? fit : claim->most - *count;
    int status = cwist_jq__redis_lane_start(claim, lane, until);
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__redis_lane_wait(claim, lane, until, claim);
    }
    if (status == CWIST_SUCCESS &&
        cwist_jq__redis_take_read(claim, lane, jobs + *count, &more, &empty) == CWIST_SUCCESS) {
        *count += more;
    }
}

int cwist_jq__redis_claim_wait(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs,
                               size_t *count)
{
    size_t first = size_of_late(claim) == 0 ? FIRST_READ : 0;
    int status = CWIST_JQ_GO_ON;

    *count = 0;
    cwist_jq__redis_claim_limit(claim);
    while (status == CWIST_JQ_GO_ON) {
        status = cwist_jq__claim_check(claim);
        if (status == CWIST_SUCCESS) {
            status = step(claim, until, jobs, count);
        }
    }
    if (status == CWIST_SUCCESS && *count == first && *count < claim->most) {
        read_rest(claim, jobs, count);
    }
    return status;
}
