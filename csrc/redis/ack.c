/*
 * Acks of many jobs. One XDEL deletes the entries of all and answers how many were there; XACK
 * takes them off the pending list. That number does not say which are missing, so jobs whose lease
 * is nearly over are deleted one by one in the same exchange: of the others none can be missing
 * unless somebody removed it by hand or shortened the visibility.
 */
#include <string.h>

#include "redis/redis.h"

#define NEARLY_MS 20 /* and a twentieth of the lease */
#define NEARLY_PART 20

/* The moment from which the job may have been given to another, also if the visibility was
 * shortened meanwhile. */
static uint64_t lease_end(const cwist_jq__queue *queue, cwist_jq__job *job)
{
    uint64_t ends = cwist_jq__add_ms(atomic_load(&job->lease_starts), cwist_jq__lease_ms(queue));

    return cwist_jq__earlier(ends, atomic_load(&job->lease_ends));
}

int cwist_jq__redis_not_ours(const cwist_jq__queue *queue, cwist_jq__job *job, bool unanswered)
{
    /* After a lost reply that may be our own doing: it is when the lease cannot have run out. */
    if (unanswered) {
        return cwist_jq__now() < lease_end(queue, job)
                   ? CWIST_SUCCESS
                   : cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                    "job %s: sent, but the reply was lost, and by now the lease "
                                    "has ended: done or given away",
                                    job->id);
    }
    return cwist_jq__fail(CWIST_ERROR_LEASE_LOST,
                          "job %s was given away: its lease ended, or it was removed", job->id);
}

void cwist_jq__redis_acks_begin(cwist_jq__redis_acks *acks, cwist_jq__queue *queue,
                                cwist_jq__job *const *jobs, size_t count)
{
    acks->queue = queue;
    acks->jobs = jobs;
    acks->count = count;
    acks->alone = 0;
}

static void choose_apart(cwist_jq__redis_acks *acks, bool all_apart)
{
    uint64_t lease = cwist_jq__lease_ms(acks->queue);
    uint64_t nearly = lease / NEARLY_PART > NEARLY_MS ? lease / NEARLY_PART : NEARLY_MS;
    uint64_t soon = cwist_jq__after_ms(nearly);

    acks->alone = 0;
    for (size_t i = 0; i < acks->count; i++) {
        acks->apart[i] =
            all_apart || acks->count == 1 || lease_end(acks->queue, acks->jobs[i]) <= soon;
        acks->alone += acks->apart[i] ? 1 : 0;
    }
}

unsigned cwist_jq__redis_acks_replies(const cwist_jq__redis_acks *acks)
{
    return (unsigned)acks->alone + (acks->alone < acks->count ? 1 : 0) + 1;
}

/* XDEL before XACK: cut in between it leaves ghosts, which recovery clears, and no entry. */
void cwist_jq__redis_acks_build(cwist_jq__redis_request *request, cwist_jq__redis_acks *acks,
                                bool all_apart)
{
    const char *stream = cwist_jq__redis_of(acks->queue)->keys.stream;

    choose_apart(acks, all_apart);
    for (size_t i = 0; i < acks->count && acks->alone != 0; i++) {
        if (acks->apart[i]) {
            cwist_jq__request_command(request, "XDEL", 2);
            cwist_jq__request_text(request, stream);
            cwist_jq__request_text(request, acks->jobs[i]->receipt);
        }
    }
    if (acks->alone < acks->count) {
        cwist_jq__request_command(request, "XDEL", 1 + acks->count - acks->alone);
        cwist_jq__request_text(request, stream);
        for (size_t i = 0; i < acks->count; i++) {
            if (!acks->apart[i]) {
                cwist_jq__request_text(request, acks->jobs[i]->receipt);
            }
        }
    }
    cwist_jq__request_command(request, "XACK", 2 + acks->count);
    cwist_jq__request_text(request, stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    for (size_t i = 0; i < acks->count; i++) {
        cwist_jq__request_text(request, acks->jobs[i]->receipt);
    }
}

/*
 * Of jobs that were deleted together `lost` were not there. They are those whose lease has ended by
 * now, when the number fits; else nobody can tell which.
 */
static void share_out(const cwist_jq__redis_acks *acks, size_t together, size_t lost, int *codes,
                      cwist_jq__failure *failure)
{
    size_t over = 0;
    uint64_t now = cwist_jq__now();

    for (size_t i = 0; i < acks->count; i++) {
        over += !acks->apart[i] && lease_end(acks->queue, acks->jobs[i]) <= now ? 1 : 0;
    }
    for (size_t i = 0; i < acks->count; i++) {
        if (acks->apart[i]) {
            continue;
        }
        codes[i] = CWIST_SUCCESS;
        if (lost == together) {
            codes[i] = cwist_jq__redis_not_ours(acks->queue, acks->jobs[i], false);
        } else if (lost != over) {
            codes[i] = cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                      "%zu of %zu jobs that were acked together were given away or "
                                      "removed; which of them cannot be told",
                                      lost, together);
        } else if (lease_end(acks->queue, acks->jobs[i]) <= now) {
            codes[i] =
                cwist_jq__fail(CWIST_ERROR_LEASE_LOST,
                               "job %s was given away: its lease ended (%zu of %zu jobs that "
                               "were acked together)",
                               acks->jobs[i]->id, lost, together);
        }
        if (codes[i] != CWIST_SUCCESS) {
            cwist_jq__failure_note(failure, i, codes[i]);
        }
    }
}

int cwist_jq__redis_acks_take(const cwist_jq__redis_acks *acks, redisReply *const *replies,
                              bool unanswered, int *codes)
{
    size_t together = acks->count - acks->alone;
    unsigned deletions = cwist_jq__redis_acks_replies(acks) - 1;
    cwist_jq__failure failure;
    unsigned at = 0;

    failure.code = CWIST_SUCCESS;
    for (unsigned i = 0; i < deletions; i++) {
        long long most = i < acks->alone ? 1 : (long long)together;
        if (!cwist_jq__redis_is_number(replies[i]) || replies[i]->integer < 0 ||
            replies[i]->integer > most) {
            int status = cwist_jq__redis_odd_reply("XDEL");
            for (size_t j = 0; j < acks->count; j++) {
                codes[j] = status;
            }
            return status;
        }
    }
    for (size_t i = 0; i < acks->count; i++) {
        codes[i] = CWIST_SUCCESS;
        if (acks->apart[i] && replies[at++]->integer == 0) {
            codes[i] = cwist_jq__redis_not_ours(acks->queue, acks->jobs[i], unanswered);
            if (codes[i] != CWIST_SUCCESS) {
                cwist_jq__failure_note(&failure, i, codes[i]);
            }
        }
    }
    if (together != 0 && (size_t)replies[at]->integer < together) {
        share_out(acks, together, together - (size_t)replies[at]->integer, codes, &failure);
    }
    return cwist_jq__failure_tell(&failure);
}

/* ---- one exchange, repeated while that is of use ---- */

/* What is missing at a repetition may be our own doing: only one by one can that be told. */
static void build_acks(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    cwist_jq__redis_acks *const *acks = call->input;

    cwist_jq__redis_acks_build(request, *acks, call->unanswered);
}

int cwist_jq__redis_ack_again(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                              bool unanswered, uint64_t deadline, int *codes)
{
    cwist_jq__redis_acks acks;
    cwist_jq__redis_acks *const input = &acks;
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_acks,
                                 .input = &input,
                                 .deadline = deadline,
                                 .repeatable = true,
                                 .unanswered = unanswered};

    cwist_jq__redis_acks_begin(&acks, queue, jobs, count);
    int status = cwist_jq__redis_run(&call);
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__redis_acks_take(&acks, call.replies.at, call.unanswered, codes);
    } else {
        for (size_t i = 0; i < count; i++) {
            codes[i] = status;
        }
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}

int cwist_jq__redis_ack(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                        uint64_t deadline, int *codes)
{
    return cwist_jq__redis_ack_again(queue, jobs, count, false, deadline, codes);
}
