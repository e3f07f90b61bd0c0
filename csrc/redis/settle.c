/*
 * The ends of a delivery. Every delivery has an entry of its own, so the entry's id is the fence:
 * the server says whether the entry is still there, and a repeat after a lost reply does no harm.
 */
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

typedef struct {
    const cwist_jq__job *job;
    uint32_t attempts;
    uint64_t delay_ms;
    bool counts;
    const char *cause;
    const char *reason;
} ending_input;

static void start_call(cwist_jq__redis_call *call, cwist_jq__queue *queue,
                       const ending_input *ending, uint64_t deadline)
{
    memset(call, 0, sizeof *call);
    call->conn = queue->conn;
    call->queue = queue;
    call->input = ending;
    call->deadline = deadline;
    call->repeatable = true;
}

/* Whether nobody can have been given the job yet, also if the visibility was shortened meanwhile.
 */
static bool lease_runs(const cwist_jq__queue *queue, cwist_jq__job *job)
{
    uint64_t ends = cwist_jq__add_ms(atomic_load(&job->lease_starts), cwist_jq__lease_ms(queue));

    return cwist_jq__now() < cwist_jq__earlier(ends, atomic_load(&job->lease_ends));
}

/*
 * The server says that the delivery is not ours. After a try whose reply was lost that may be our
 * own doing: it is when the lease cannot have run out since; else nobody can tell.
 */
static int not_ours(const cwist_jq__redis_call *call, cwist_jq__job *job)
{
    if (call->unanswered) {
        return lease_runs(call->queue, job)
                   ? CWIST_SUCCESS
                   : cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                    "job %s: sent, but the reply was lost, and by now the lease "
                                    "has ended: done or given away",
                                    job->id);
    }
    return cwist_jq__fail(CWIST_ERROR_LEASE_LOST,
                          "job %s was given away: its lease ended, or it was removed", job->id);
}

/* Runs the call; its first reply is 1 when the delivery was ours. */
static int run_ending(cwist_jq__redis_call *call, cwist_jq__job *job)
{
    int status = cwist_jq__redis_run(call);

    if (status == CWIST_SUCCESS) {
        const redisReply *reply = call->replies[0];
        if (!cwist_jq__redis_is_number(reply)) {
            status = cwist_jq__redis_odd_reply(call->names[0]);
        } else if (reply->integer != 1) {
            status = not_ours(call, job);
        }
    }
    cwist_jq__redis_call_clear(call);
    return status;
}

/* XDEL before XACK: cut in between it leaves a ghost, which recovery clears, and no entry. */
static void build_ack(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const ending_input *ending = call->input;
    const char *stream = cwist_jq__redis_of(call->queue)->keys.stream;

    cwist_jq__request_command(request, "XDEL", 2);
    cwist_jq__request_text(request, stream);
    cwist_jq__request_text(request, ending->job->receipt);
    cwist_jq__request_command(request, "XACK", 3);
    cwist_jq__request_text(request, stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, ending->job->receipt);
}

int cwist_jq__redis_ack(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline)
{
    ending_input ending = {.job = job};
    cwist_jq__redis_call call;

    start_call(&call, queue, &ending, deadline);
    call.build = build_ack;
    return run_ending(&call, job);
}

static void build_delivery_args(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const ending_input *ending = call->input;

    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, call->queue->consumer);
    cwist_jq__request_text(request, ending->job->receipt);
    cwist_jq__request_number(request, ending->attempts);
}

static void build_give_back(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const ending_input *ending = call->input;
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(call->queue)->keys;

    cwist_jq__request_script(request, &cwist_jq__redis_script_retry, call->whole, 6);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->delay);
    cwist_jq__request_text(request, keys->wait);
    build_delivery_args(request, call);
    cwist_jq__request_number(request, ending->delay_ms);
    cwist_jq__request_text(request, ending->counts ? "1" : "0");
}

int cwist_jq__redis_retry(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t delay_ms,
                          uint64_t deadline)
{
    ending_input ending = {
        .job = job, .attempts = job->attempts, .delay_ms = delay_ms, .counts = true};
    cwist_jq__redis_call call;

    start_call(&call, queue, &ending, deadline);
    call.build = build_give_back;
    return run_ending(&call, job);
}

int cwist_jq__redis_release(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline)
{
    ending_input ending = {.job = job, .attempts = job->attempts > 0 ? job->attempts - 1 : 0};
    cwist_jq__redis_call call;

    start_call(&call, queue, &ending, deadline);
    call.build = build_give_back;
    return run_ending(&call, job);
}

static void build_bury(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const ending_input *ending = call->input;
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(call->queue)->keys;

    cwist_jq__request_script(request, &cwist_jq__redis_script_bury, call->whole, 8);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->dead);
    cwist_jq__request_text(request, keys->dead_body);
    build_delivery_args(request, call);
    cwist_jq__request_text(request, ending->cause);
    cwist_jq__request_text(request, ending->reason != NULL ? ending->reason : "");
    cwist_jq__request_text(request, ending->job->id);
    cwist_jq__request_text(request, ending->job->type != NULL ? ending->job->type : "");
}

int cwist_jq__redis_bury(cwist_jq__queue *queue, cwist_jq__job *job, cwist_jq__cause cause,
                         const char *text, uint64_t deadline)
{
    ending_input ending = {.job = job,
                           .attempts = job->attempts,
                           .cause = cwist_jq__cause_name(cause),
                           .reason = text};
    cwist_jq__redis_call call;

    start_call(&call, queue, &ending, deadline);
    call.build = build_bury;
    return run_ending(&call, job);
}

static void build_extend(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    const ending_input *ending = call->input;

    cwist_jq__request_command(request, "XCLAIM", 6);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, call->queue->consumer);
    cwist_jq__request_text(request, "0");
    cwist_jq__request_text(request, ending->job->receipt);
    cwist_jq__request_text(request, "JUSTID");
}

int cwist_jq__redis_extend(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline)
{
    ending_input ending = {.job = job};
    cwist_jq__redis_call call;

    start_call(&call, queue, &ending, deadline);
    call.build = build_extend;
    int status = cwist_jq__redis_run(&call);
    if (status == CWIST_SUCCESS) {
        const redisReply *reply = call.replies[0];
        if (reply->type != REDIS_REPLY_ARRAY) {
            status = cwist_jq__redis_odd_reply("XCLAIM");
        } else if (reply->elements == 0) {
            /* An extension that was done before leaves the entry ours: this is a real loss. */
            status = cwist_jq__fail(CWIST_ERROR_LEASE_LOST,
                                    "job %s was given away: its lease ended, or it was removed",
                                    job->id);
        } else {
            atomic_store(&job->lease_starts, call.started);
            atomic_store(&job->lease_ends,
                         cwist_jq__add_ms(call.started, cwist_jq__lease_ms(queue)));
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}
