/*
 * Dead letters: list, look up, requeue, remove. A list has no index, so what is looked for is found
 * by walking, a bounded piece in each call of a script; a letter is moved by its bytes, from the
 * end of the list that it is nearer to.
 */
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

#define TOLD 4 /* values for each letter: lua/includes/letter.lua */

/* ---- walks ---- */

/* A script that says where to go on, until it has found what it looks for. */
typedef struct {
    cwist_jq__redis_call call;
    const char *after; /* the mark, or what is looked for */
    size_t most;
    bool flag; /* oldest first; the payload too */
    bool by_id;
    bool begun;
    uint64_t index; /* where to go on */
} dead_walk;

static void walk_begin(dead_walk *walk, cwist_jq__queue *queue, uint64_t deadline,
                       void (*build)(cwist_jq__redis_request *request,
                                     const cwist_jq__redis_call *call))
{
    memset(walk, 0, sizeof *walk);
    walk->call.conn = queue->conn;
    walk->call.queue = queue;
    walk->call.deadline = deadline;
    walk->call.repeatable = true;
    walk->call.build = build;
    walk->call.input = walk;
}

static void build_index(cwist_jq__redis_request *request, const dead_walk *walk)
{
    if (walk->begun) {
        cwist_jq__request_number(request, walk->index);
    } else {
        cwist_jq__request_text(request, "");
    }
}

static void build_dead_keys(cwist_jq__redis_request *request, const cwist_jq__queue *queue)
{
    cwist_jq__request_text(request, cwist_jq__redis_of(queue)->keys.dead);
    cwist_jq__request_text(request, cwist_jq__redis_of(queue)->keys.dead_body);
}

/* Runs the script once more from an index on. */
static int walk_step(dead_walk *walk, const redisReply **reply)
{
    cwist_jq__redis_call_clear(&walk->call);
    int status = cwist_jq__redis_run(&walk->call);

    if (status == CWIST_SUCCESS) {
        *reply = walk->call.replies.at[0];
        if ((*reply)->type != REDIS_REPLY_ARRAY) {
            status = cwist_jq__redis_odd_reply("EVALSHA (letters)");
        }
    }
    return status;
}

static bool go_on(dead_walk *walk, const redisReply *index)
{
    if (!cwist_jq__redis_is_number(index) || index->integer < 0) {
        return false;
    }
    walk->begun = true;
    walk->index = (uint64_t)index->integer;
    return true;
}

static int add_letter(cwist_job_dead_page_t *page, redisReply *const *told,
                      const redisReply *payload)
{
    const cwist_jq__redis_dead dead = {told[0], told[1], told[2], told[3], payload};

    return cwist_jq__redis_letter_add(page, &dead);
}

/* ---- a page ---- */

static void build_list(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const dead_walk *list = call->input;

    cwist_jq__request_script(request, &cwist_jq__redis_script_letters, call->whole, 4);
    build_dead_keys(request, call->queue);
    cwist_jq__request_text(request, list->flag ? "1" : "0");
    cwist_jq__request_number(request, list->most);
    cwist_jq__request_text(request, list->after != NULL ? list->after : "");
    build_index(request, list);
}

static int take_page(const redisReply *reply, cwist_job_dead_page_t *page, bool *more)
{
    int status = CWIST_SUCCESS;

    if (reply->elements < 2 || (reply->elements - 2) % TOLD != 0 ||
        !cwist_jq__redis_is_number(reply->element[1])) {
        return cwist_jq__redis_odd_reply("EVALSHA (letters)");
    }
    *more = reply->element[1]->integer != 0;
    for (size_t i = 2; i < reply->elements && status == CWIST_SUCCESS; i += TOLD) {
        status = add_letter(page, reply->element + i, NULL);
    }
    return status;
}

int cwist_jq__redis_dead_list(cwist_jq__queue *queue, const char *after, size_t most,
                              bool oldest_first, uint64_t deadline, cwist_job_dead_page_t *page,
                              bool *more)
{
    const redisReply *reply = NULL;
    dead_walk list;

    walk_begin(&list, queue, deadline, build_list);
    list.after = after;
    list.most = most;
    list.flag = oldest_first;
    int status = walk_step(&list, &reply);
    while (status == CWIST_SUCCESS && reply->elements == 2 &&
           cwist_jq__redis_is_number(reply->element[0]) && reply->element[0]->integer == 0 &&
           go_on(&list, reply->element[1])) {
        status = walk_step(&list, &reply);
    }
    if (status == CWIST_SUCCESS && reply->elements == 1) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                "after is no mark of a page of this queue's dead letters");
    } else if (status == CWIST_SUCCESS) {
        status = take_page(reply, page, more);
    }
    cwist_jq__redis_call_clear(&list.call);
    return status;
}

/* ---- one letter ---- */

static void build_find(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const dead_walk *find = call->input;

    cwist_jq__request_script(request, &cwist_jq__redis_script_find, call->whole, 4);
    build_dead_keys(request, call->queue);
    cwist_jq__request_text(request, find->after);
    cwist_jq__request_text(request, find->by_id ? "1" : "0");
    cwist_jq__request_text(request, find->flag ? "1" : "0");
    build_index(request, find);
}

int cwist_jq__redis_dead_find(cwist_jq__queue *queue, const char *id, bool payload,
                              uint64_t deadline, cwist_job_dead_page_t *page)
{
    size_t older = sizeof CWIST_JQ_REDIS_OLDER_ID - 1;
    const redisReply *reply = NULL;
    dead_walk find;

    walk_begin(&find, queue, deadline, build_find);
    find.flag = payload;
    find.by_id = strncmp(id, CWIST_JQ_REDIS_OLDER_ID, older) != 0;
    find.after = find.by_id ? id : id + older;
    int status = walk_step(&find, &reply);
    while (status == CWIST_SUCCESS && reply->elements == 1 && go_on(&find, reply->element[0])) {
        status = walk_step(&find, &reply);
    }
    if (status == CWIST_SUCCESS && reply->elements == 0) {
        status = cwist_jq__fail(CWIST_ERROR_NOT_FOUND, "there is no dead letter %s", id);
    } else if (status == CWIST_SUCCESS && reply->elements < TOLD) {
        status = cwist_jq__redis_odd_reply("EVALSHA (find)");
    } else if (status == CWIST_SUCCESS) {
        /* The payload of one that is not in our format is in its element. */
        const redisReply *body = reply->element[reply->elements > TOLD ? TOLD : 0];
        status = add_letter(page, reply->element, payload ? body : NULL);
    }
    cwist_jq__redis_call_clear(&find.call);
    return status;
}

/* ---- requeue and remove ---- */

typedef struct {
    const cwist_jq__letter *const *letters;
    int *codes;
    bool requeue;
} moves;

static void build_move(cwist_jq__redis_request *request, const cwist_jq__redis_work *work,
                       size_t item, bool whole)
{
    const moves *all = work->input;
    const cwist_jq__letter *letter = all->letters[item];
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(work->queue)->keys;

    if (all->requeue) {
        cwist_jq__request_script(request, &cwist_jq__redis_script_requeue, whole, 3);
        cwist_jq__request_text(request, keys->stream);
        cwist_jq__request_text(request, keys->delay);
    } else {
        cwist_jq__request_script(request, &cwist_jq__redis_script_discard, whole, 2);
    }
    build_dead_keys(request, work->queue);
    cwist_jq__request_borrow(request, letter->place + 1, letter->place_len - 1);
    cwist_jq__request_text(request, letter->place[0] == '-' ? "-1" : "1");
    if (all->requeue) {
        cwist_jq__request_number(request, work->queue->max_length);
    }
}

static int take_move(const cwist_jq__redis_work *work, size_t item, const redisReply *reply,
                     bool unanswered)
{
    const moves *all = work->input;
    const char *id = all->letters[item]->told.id;

    if (!cwist_jq__redis_is_number(reply)) {
        return cwist_jq__redis_odd_reply(work->command);
    }
    if (reply->integer > 0) {
        return CWIST_SUCCESS;
    }
    if (reply->integer < 0) {
        return cwist_jq__fail(
            CWIST_ERROR_FULL,
            "the queue is full: it may hold %llu jobs, ready, delayed and claimed",
            (unsigned long long)work->queue->max_length);
    }
    if (unanswered && !all->requeue) {
        return CWIST_SUCCESS; /* it is gone, most likely by the first try */
    }
    return unanswered ? cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                       "dead letter %s: sent, but the reply was lost; by now it is "
                                       "not there: moved, or removed by another",
                                       id)
                      : cwist_jq__fail(CWIST_ERROR_NOT_FOUND, "there is no dead letter %s", id);
}

static void note_move(const cwist_jq__redis_work *work, size_t item, int code)
{
    const moves *all = work->input;

    all->codes[item] = code;
}

static int run_moves(cwist_jq__queue *queue, const moves *all, size_t count, uint64_t deadline)
{
    cwist_jq__redis_work work = {.queue = queue,
                                 .deadline = deadline,
                                 .command = "EVALSHA",
                                 .repeatable = true,
                                 .input = all,
                                 .build = build_move,
                                 .take = take_move,
                                 .note = note_move};

    return cwist_jq__redis_run_pieces(&work, count);
}

int cwist_jq__redis_dead_requeue(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                 size_t count, uint64_t deadline, int *codes)
{
    moves all = {letters, codes, true};

    return run_moves(queue, &all, count, deadline);
}

int cwist_jq__redis_dead_remove(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                size_t count, uint64_t deadline, int *codes)
{
    moves all = {letters, codes, false};

    return run_moves(queue, &all, count, deadline);
}
