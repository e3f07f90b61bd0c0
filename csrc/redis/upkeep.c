/* What concerns a queue as a whole: counts, the server's clock, purge, pause. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

/* ---- counts and clock ---- */

static void build_dead_count(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    cwist_jq__request_command(request, "LLEN", 1);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.dead);
}

int cwist_jq__redis_dead_count(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count)
{
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_dead_count,
                                 .deadline = deadline,
                                 .repeatable = true};
    int status = cwist_jq__redis_run(&call);

    if (status == CWIST_SUCCESS) {
        const redisReply *reply = call.replies.at[0];
        if (cwist_jq__redis_is_number(reply) && reply->integer >= 0) {
            *count = (uint64_t)reply->integer;
        } else {
            status = cwist_jq__redis_odd_reply("LLEN");
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}

static void build_time(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    (void)call;
    cwist_jq__request_command(request, "TIME", 0);
}

int cwist_jq__redis_server_time(cwist_jq__queue *queue, uint64_t deadline, uint64_t *now_ms)
{
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_time,
                                 .deadline = deadline,
                                 .repeatable = true};
    int status = cwist_jq__redis_run(&call);

    if (status == CWIST_SUCCESS) {
        const redisReply *reply = call.replies.at[0];
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
            cwist_jq__redis_is_text(reply->element[0]) &&
            cwist_jq__redis_is_text(reply->element[1])) {
            *now_ms = strtoull(reply->element[0]->str, NULL, 10) * 1000 +
                      strtoull(reply->element[1]->str, NULL, 10) / 1000;
        } else {
            status = cwist_jq__redis_odd_reply("TIME");
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}

static void build_stats(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(call->queue)->keys;

    cwist_jq__request_script(request, &cwist_jq__redis_script_stats, call->whole, 1);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->delay);
    cwist_jq__request_text(request, keys->dead);
    cwist_jq__request_text(request, keys->conf);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
}

static int take_stats(const redisReply *reply, cwist_job_stats_t *stats)
{
    uint64_t *const places[] = {&stats->ready, &stats->claimed,         &stats->delayed,
                                &stats->dead,  &stats->oldest_ready_ms, &stats->consumers};
    size_t count = sizeof places / sizeof places[0];

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != count + 1) {
        return cwist_jq__redis_odd_reply("EVALSHA (stats)");
    }
    for (size_t i = 0; i <= count; i++) {
        if (!cwist_jq__redis_is_number(reply->element[i]) || reply->element[i]->integer < 0) {
            return cwist_jq__redis_odd_reply("EVALSHA (stats)");
        }
        if (i < count) {
            *places[i] = (uint64_t)reply->element[i]->integer;
        }
    }
    stats->paused = reply->element[count]->integer != 0;
    return CWIST_SUCCESS;
}

int cwist_jq__redis_stats(cwist_jq__queue *queue, uint64_t deadline, cwist_job_stats_t *stats)
{
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_stats,
                                 .deadline = deadline,
                                 .repeatable = true};
    int status = cwist_jq__redis_run(&call);

    if (status == CWIST_SUCCESS) {
        status = take_stats(call.replies.at[0], stats);
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}

/* ---- purge ---- */

/*
 * The mark holds the id of the last entry that may go, "<ms>-<sequence>", in one number. A sequence
 * that does not fit, which no server makes by itself, counts as the highest that does.
 */
#define SEQUENCE_BITS 20
#define SEQUENCE_MAX ((UINT64_C(1) << SEQUENCE_BITS) - 1)

static uint64_t pack_mark(const char *id)
{
    char *end = NULL;
    uint64_t ms = strtoull(id, &end, 10);
    uint64_t sequence = *end == '-' ? strtoull(end + 1, NULL, 10) : 0;

    return ms << SEQUENCE_BITS | (sequence < SEQUENCE_MAX ? sequence : SEQUENCE_MAX);
}

static void build_purge(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const uint64_t *mark = call->input;
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(call->queue)->keys;
    char bound[CWIST_JOB_ID_SIZE] = "";

    if (*mark != 0) {
        (void)snprintf(bound, sizeof bound, "%llu-%llu",
                       (unsigned long long)(*mark >> SEQUENCE_BITS),
                       (unsigned long long)(*mark & SEQUENCE_MAX));
    }
    cwist_jq__request_script(request, &cwist_jq__redis_script_purge, call->whole, 2);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->delay);
    cwist_jq__request_text(request, keys->wait);
    cwist_jq__request_text(request, keys->dedupe);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, bound);
}

int cwist_jq__redis_purge(cwist_jq__queue *queue, uint64_t deadline, uint64_t *mark,
                          uint64_t *count, bool *more)
{
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_purge,
                                 .input = mark,
                                 .deadline = deadline};
    int status = cwist_jq__redis_run(&call);

    if (status == CWIST_SUCCESS) {
        const redisReply *reply = call.replies.at[0];
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
            cwist_jq__redis_is_text(reply->element[0]) &&
            cwist_jq__redis_is_number(reply->element[1]) && reply->element[1]->integer >= 0 &&
            cwist_jq__redis_is_number(reply->element[2])) {
            *mark = pack_mark(reply->element[0]->str);
            *count += (uint64_t)reply->element[1]->integer;
            *more = reply->element[2]->integer != 0;
        } else {
            status = cwist_jq__redis_odd_reply("EVALSHA (purge)");
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}

/* ---- pause ---- */

static void build_pause(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const bool *paused = call->input;

    cwist_jq__request_script(request, &cwist_jq__redis_script_pause, call->whole, 1);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.conf);
    cwist_jq__request_text(request, *paused ? "1" : "0");
}

int cwist_jq__redis_set_pause(cwist_jq__queue *queue, bool paused, uint64_t deadline)
{
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_pause,
                                 .input = &paused,
                                 .deadline = deadline,
                                 .repeatable = true};
    int status = cwist_jq__redis_run(&call);

    if (status == CWIST_SUCCESS) {
        /* The claims of this handle need not wait for the next tick to know. */
        atomic_store_explicit(&cwist_jq__redis_of(queue)->paused, paused, memory_order_relaxed);
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}
