/*
 * Many items in one exchange. Each answer is an item's own: an error of one does not undo the
 * others. What the server refused for now is sent again until the deadline, and only that; so an
 * item that was refused while one behind it was taken changes places with it. Of what was sent and
 * not answered nobody knows; an item that may not be sent twice is then left, and with it those of
 * the piece that were not sent.
 */
#include "redis/redis.h"

#define PIECE_BYTES ((size_t)1024 * 1024)

typedef struct tally tally;

/* The piece under way. */
typedef struct piece {
    const cwist_jq__redis_work *work;
    tally *open;
    bool tick;
    cwist_jq__failure failure; /* the first of all pieces */
    bool stop;                 /* no other piece is sent */
    bool lost;                 /* the outcome of an item is unknown for good */
} piece;

/* The items of a piece that have no result yet. */
struct tally {
    size_t count;
    size_t taken; /* how many the piece began with */
    bool settled; /* which items belong to the piece: the first try says how many fit */
    uint16_t items[CWIST_JQ_PIECE];
    bool unanswered[CWIST_JQ_PIECE];
    size_t ends[CWIST_JQ_PIECE]; /* where each ends in the request */
};

static void build_piece(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const piece *now = call->input;
    tally *open = now->open;
    size_t built = 0;

    if (call->skip != 0) {
        cwist_jq__redis_tick_build(request, call->queue, false, false);
    }
    while (built < open->count &&
           (open->settled || cwist_jq__request_size(request) < PIECE_BYTES)) {
        /* One EVAL teaches the server the script for all behind it. */
        now->work->build(request, now->work, open->items[built], call->whole && built == 0);
        open->ends[built++] = cwist_jq__request_size(request);
    }
    if (!open->settled) {
        open->settled = true;
        open->taken = built;
    }
    open->count = built;
}

static void finish(piece *now, size_t item, int code)
{
    now->work->note(now->work, item, code);
    if (code != CWIST_SUCCESS) {
        cwist_jq__failure_note(&now->failure, item, code);
        /* These say something of the one item. */
        now->stop = now->stop || (code != CWIST_ERROR_LEASE_LOST && code != CWIST_ERROR_FULL &&
                                  code != CWIST_ERROR_NOT_FOUND);
    }
}

static void finish_all(piece *now, int status, bool give_up)
{
    const tally *open = now->open;
    cwist_jq__failure cause;

    cause.code = CWIST_SUCCESS;
    cwist_jq__failure_note(&cause, 0, status);
    for (size_t i = 0; i < open->count; i++) {
        (void)cwist_jq__failure_tell(&cause);
        finish(now, open->items[i],
               give_up ? cwist_jq__redis_give_up(open->unanswered[i], status) : status);
    }
}

static bool may_repeat(const cwist_jq__redis_work *work, size_t item)
{
    return work->may_repeat != NULL ? work->may_repeat(work, item) : work->repeatable;
}

/* Once the outcome of an item is unknown, others are sent only to learn what became of them. */
static void keep_unanswered(tally *open)
{
    size_t kept = 0;

    for (size_t i = 0; i < open->count; i++) {
        if (open->unanswered[i]) {
            open->items[kept] = open->items[i];
            open->unanswered[kept++] = true;
        }
    }
    open->count = kept;
}

/* Takes an answer. False: the item is to be sent again. */
static bool take_answer(piece *now, cwist_jq__redis_call *call, size_t i, const redisReply *reply,
                        bool *at_once)
{
    const tally *open = now->open;
    size_t item = open->items[i];
    int code = CWIST_SUCCESS;

    if (reply->type == REDIS_REPLY_ERROR) {
        code = cwist_jq__redis_consider(call, now->work->command, reply, at_once);
        if (code == CWIST_JQ_AGAIN) {
            return false;
        }
    } else {
        code = now->work->take(now->work, item, reply, open->unanswered[i]);
    }
    finish(now, item, code);
    return true;
}

/*
 * Parts the items by what came of the try; those to be sent again stay. Returns why they do, the
 * text set.
 */
static int take_answers(piece *now, cwist_jq__redis_call *call, int status, bool *at_once)
{
    const cwist_jq__redis_replies *replies = &call->replies;
    unsigned answered = replies->count > call->skip ? replies->count - call->skip : 0;
    tally *open = now->open;
    cwist_jq__failure cause;
    size_t kept = 0;

    cause.code = CWIST_SUCCESS;
    if (status != CWIST_SUCCESS) {
        cwist_jq__failure_note(&cause, 0, status);
    }
    for (size_t i = 0; i < open->count; i++) {
        bool unanswered = open->unanswered[i];
        if (i < answered) {
            if (take_answer(now, call, i, replies->at[call->skip + i], at_once)) {
                continue;
            }
            cwist_jq__failure_note(&cause, 0, CWIST_JQ_AGAIN);
        } else if (call->size != 0 && open->ends[i] <= call->sent) {
            if (!may_repeat(now->work, open->items[i])) {
                (void)cwist_jq__failure_tell(&cause);
                finish(now, open->items[i], cwist_jq__redis_unknown());
                now->lost = true;
                continue;
            }
            unanswered = true;
        }
        open->items[kept] = open->items[i];
        open->unanswered[kept++] = unanswered;
    }
    open->count = kept;
    if (now->lost) {
        keep_unanswered(open);
    }
    return cwist_jq__failure_tell(&cause);
}

static void run_piece(piece *now)
{
    const cwist_jq__redis_work *work = now->work;
    cwist_jq__redis_call call = {.conn = work->queue->conn,
                                 .queue = work->queue,
                                 .build = build_piece,
                                 .input = now,
                                 .deadline = work->deadline};
    cwist_jq__redis_pace pace;

    cwist_jq__redis_pace_begin(&pace);
    call.skip = now->tick ? 1 : 0;
    for (;;) {
        bool at_once = false;
        int status = cwist_jq__redis_try(&call);
        if (call.skip != 0 && call.replies.count > 0) {
            cwist_jq__redis_tick_favour(work->queue, call.replies.at[0]);
        }
        status = take_answers(now, &call, status, &at_once);
        cwist_jq__redis_call_clear(&call);
        if (now->open->count == 0) {
            return;
        }
        if (status != CWIST_JQ_AGAIN && status != CWIST_ERROR_IO) {
            finish_all(now, status, false);
            return;
        }
        status = cwist_jq__redis_pause(&pace, &call, status, at_once);
        if (cwist_jq__passed(work->deadline)) {
            finish_all(now, status, true);
            return;
        }
        call.skip = 0;
    }
}

/* Begins a piece with the items from `first` on; how many of them fit is found out by sending. */
static void open_piece(tally *open, size_t first, size_t count)
{
    open->count = count < CWIST_JQ_PIECE ? count : CWIST_JQ_PIECE;
    open->taken = open->count;
    open->settled = false;
    for (size_t i = 0; i < open->count; i++) {
        open->items[i] = (uint16_t)(first + i);
        open->unanswered[i] = false;
    }
}

int cwist_jq__redis_run_pieces(const cwist_jq__redis_work *work, size_t count)
{
    tally open;
    piece now;

    now.work = work;
    now.open = &open;
    now.tick = work->tick;
    now.failure.code = CWIST_SUCCESS;
    now.stop = false;
    now.lost = false;
    for (size_t i = 0; i < count; i++) {
        work->note(work, i, CWIST_ERROR_NOT_SENT);
    }
    for (size_t done = 0; done < count && !now.stop; done += open.taken) {
        open_piece(&open, done, count - done);
        run_piece(&now);
        now.tick = false;
    }
    return cwist_jq__failure_tell(&now.failure);
}
