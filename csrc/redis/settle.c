/*
 * The ends of a delivery other than ack, and its extension. Every delivery has an entry of its own,
 * so the entry's id is the fence: the server says whether the entry is still there, and a repeat
 * after a lost reply does no harm.
 */
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

typedef struct {
    cwist_jq__job *const *jobs;
    int *codes;
    bool counts;               /* the delivery counts as an attempt */
    const uint64_t *delays_ms; /* of each, when it counts */
    uint64_t delay_ms;         /* of all, when it does not */
    const char *cause;
    const char *reason;
} endings;

static int take_ending(const cwist_jq__redis_work *work, size_t item, const redisReply *reply,
                       bool unanswered)
{
    const endings *all = work->input;

    if (!cwist_jq__redis_is_number(reply)) {
        return cwist_jq__redis_odd_reply(work->command);
    }
    return reply->integer == 1 ? CWIST_SUCCESS
                               : cwist_jq__redis_not_ours(work->queue, all->jobs[item], unanswered);
}

static void note_ending(const cwist_jq__redis_work *work, size_t item, int code)
{
    const endings *all = work->input;

    all->codes[item] = code;
}

static int run_endings(cwist_jq__redis_work *work, cwist_jq__queue *queue, const endings *all,
                       size_t count, uint64_t deadline)
{
    work->queue = queue;
    work->deadline = deadline;
    work->command = "EVALSHA";
    work->repeatable = true;
    work->input = all;
    work->take = take_ending;
    work->note = note_ending;
    return cwist_jq__redis_run_pieces(work, count);
}

static void build_delivery_args(cwist_jq__redis_request *request, const cwist_jq__queue *queue,
                                const cwist_jq__job *job, uint32_t attempts)
{
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, queue->consumer);
    cwist_jq__request_text(request, job->receipt);
    cwist_jq__request_number(request, attempts);
}

static void build_give_back(cwist_jq__redis_request *request, const cwist_jq__redis_work *work,
                            size_t item, bool whole)
{
    const endings *all = work->input;
    const cwist_jq__job *job = all->jobs[item];
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(work->queue)->keys;
    uint32_t before = job->attempts > 0 ? job->attempts - 1 : 0;

    cwist_jq__request_script(request, &cwist_jq__redis_script_retry, whole, 6);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->delay);
    cwist_jq__request_text(request, keys->wait);
    cwist_jq__request_text(request, keys->dedupe);
    build_delivery_args(request, work->queue, job, all->counts ? job->attempts : before);
    cwist_jq__request_number(request, all->counts ? all->delays_ms[item] : all->delay_ms);
    cwist_jq__request_text(request, all->counts ? "1" : "0");
}

int cwist_jq__redis_retry(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                          const uint64_t *delays_ms, uint64_t deadline, int *codes)
{
    endings all = {.jobs = jobs, .codes = codes, .delays_ms = delays_ms, .counts = true};
    cwist_jq__redis_work work = {.build = build_give_back};

    return run_endings(&work, queue, &all, count, deadline);
}

int cwist_jq__redis_release(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                            uint64_t delay_ms, uint64_t deadline, int *codes)
{
    endings all = {.jobs = jobs, .codes = codes, .delay_ms = delay_ms};
    cwist_jq__redis_work work = {.build = build_give_back};

    return run_endings(&work, queue, &all, count, deadline);
}

static void build_bury(cwist_jq__redis_request *request, const cwist_jq__redis_work *work,
                       size_t item, bool whole)
{
    const endings *all = work->input;
    const cwist_jq__job *job = all->jobs[item];
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(work->queue)->keys;

    cwist_jq__request_script(request, &cwist_jq__redis_script_bury, whole, 8);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->dead);
    cwist_jq__request_text(request, keys->dead_body);
    cwist_jq__request_text(request, keys->dedupe);
    build_delivery_args(request, work->queue, job, job->attempts);
    cwist_jq__request_text(request, all->cause);
    cwist_jq__request_text(request, all->reason != NULL ? all->reason : "");
    cwist_jq__request_text(request, job->id);
    cwist_jq__request_text(request, job->type != NULL ? job->type : "");
}

int cwist_jq__redis_bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                         cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes)
{
    endings all = {
        .jobs = jobs, .codes = codes, .cause = cwist_jq__cause_name(cause), .reason = text};
    cwist_jq__redis_work work = {.build = build_bury};

    return run_endings(&work, queue, &all, count, deadline);
}

/* ---- extend: one command for all ---- */

typedef struct {
    cwist_jq__job *const *jobs;
    size_t count;
} leases;

static void build_extend(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const leases *all = call->input;

    cwist_jq__request_command(request, "XCLAIM", 5 + all->count);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, call->queue->consumer);
    cwist_jq__request_text(request, "0");
    for (size_t i = 0; i < all->count; i++) {
        cwist_jq__request_text(request, all->jobs[i]->receipt);
    }
    cwist_jq__request_text(request, "JUSTID");
}

static bool is_entry(const redisReply *reply, const char *receipt)
{
    return cwist_jq__redis_is_text(reply) && strcmp(reply->str, receipt) == 0;
}

/*
 * The answer names those that are ours, in the order in which they were asked for. An extension
 * that was done before leaves the entry ours: what is missing is a real loss.
 */
static int take_extended(const leases *all, const cwist_jq__redis_call *call, int *codes)
{
    const redisReply *reply = call->replies.at[0];
    uint64_t ends = cwist_jq__add_ms(call->started, cwist_jq__lease_ms(call->queue));
    cwist_jq__failure failure = {0};
    size_t next = 0;

    for (size_t i = 0; i < all->count; i++) {
        cwist_jq__job *job = all->jobs[i];
        codes[i] = CWIST_SUCCESS;
        if (next < reply->elements && is_entry(reply->element[next], job->receipt)) {
            next++;
            atomic_store(&job->lease_starts, call->started);
            atomic_store(&job->lease_ends, ends);
        } else {
            codes[i] = cwist_jq__fail(CWIST_ERROR_LEASE_LOST,
                                      "job %s was given away: its lease ended, or it was removed",
                                      job->id);
            cwist_jq__failure_note(&failure, i, codes[i]);
        }
    }
    return next == reply->elements ? cwist_jq__failure_tell(&failure)
                                   : cwist_jq__redis_odd_reply("XCLAIM");
}

int cwist_jq__redis_extend(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                           uint64_t deadline, int *codes)
{
    leases all = {jobs, count};
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_extend,
                                 .input = &all,
                                 .deadline = deadline,
                                 .repeatable = true};
    int status = cwist_jq__redis_run(&call);

    if (status == CWIST_SUCCESS && call.replies.at[0]->type != REDIS_REPLY_ARRAY) {
        status = cwist_jq__redis_odd_reply("XCLAIM");
    }
    if (status == CWIST_SUCCESS) {
        status = take_extended(&all, &call, codes);
    } else {
        for (size_t i = 0; i < count; i++) {
            codes[i] = status;
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}
