/*
 * Acks of many jobs. A job with a dedupe key is acked by a script, which frees the key. Of the
 * others one XDEL deletes the entries of all and answers how many were there; XACK takes them off
 * the pending list. That number does not say which are missing, so jobs whose lease is nearly over
 * are deleted one by one in the same exchange: of the others none can be missing unless somebody
 * removed it by hand or shortened the visibility.
 */
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

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
    acks->keyed = 0;
    for (size_t i = 0; i < count; i++) {
        acks->keyed += jobs[i]->key != NULL ? 1 : 0;
    }
}

static void choose_apart(cwist_jq__redis_acks *acks, bool all_apart)
{
    uint64_t lease = cwist_jq__lease_ms(acks->queue);
    uint64_t nearly = lease / NEARLY_PART > NEARLY_MS ? lease / NEARLY_PART : NEARLY_MS;
    uint64_t soon = cwist_jq__after_ms(nearly);

    acks->alone = 0;
    for (size_t i = 0; i < acks->count; i++) {
        acks->apart[i] = all_apart || acks->count == 1 || acks->jobs[i]->key != NULL ||
                         lease_end(acks->queue, acks->jobs[i]) <= soon;
        acks->alone += acks->apart[i] ? 1 : 0;
    }
}

static void build_keyed(cwist_jq__redis_request *request, const cwist_jq__queue *queue,
                        const cwist_jq__job *job, bool whole)
{
    const cwist_jq__redis_keys *keys = &cwist_jq__redis_of(queue)->keys;

    cwist_jq__request_script(request, &cwist_jq__redis_script_ack, whole, 4);
    cwist_jq__request_text(request, keys->stream);
    cwist_jq__request_text(request, keys->dedupe);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, job->receipt);
    cwist_jq__request_text(request, job->id);
    cwist_jq__request_text(request, job->key);
}

void cwist_jq__redis_acks_note_script(const cwist_jq__redis_acks *acks, bool known)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(acks->queue);

    if (acks->keyed != 0) {
        cwist_jq__lock(&own->lock);
        own->ack_known = known;
        cwist_jq__unlock(&own->lock);
    }
}

/* Those that are answered one by one. */
static void build_apart(cwist_jq__redis_request *request, const cwist_jq__redis_acks *acks)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(acks->queue);
    bool whole = false;

    if (acks->keyed != 0) {
        cwist_jq__lock(&own->lock);
        whole = !own->ack_known;
        cwist_jq__unlock(&own->lock);
    }
    for (size_t i = 0; i < acks->count; i++) {
        const cwist_jq__job *job = acks->jobs[i];
        if (job->key != NULL) {
            build_keyed(request, acks->queue, job, whole);
            whole = false; /* that taught it to the server */
        } else if (acks->apart[i]) {
            cwist_jq__request_command(request, "XDEL", 2);
            cwist_jq__request_text(request, own->keys.stream);
            cwist_jq__request_text(request, job->receipt);
        }
    }
}

/* XDEL before XACK: cut in between it leaves ghosts, which recovery clears, and no entry. */
void cwist_jq__redis_acks_build(cwist_jq__redis_request *request, cwist_jq__redis_acks *acks,
                                bool all_apart)
{
    const char *stream = cwist_jq__redis_of(acks->queue)->keys.stream;

    choose_apart(acks, all_apart);
    if (acks->alone != 0) {
        build_apart(request, acks);
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
    if (acks->keyed == acks->count) {
        return;
    }
    cwist_jq__request_command(request, "XACK", 2 + acks->count - acks->keyed);
    cwist_jq__request_text(request, stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    for (size_t i = 0; i < acks->count; i++) {
        if (acks->jobs[i]->key == NULL) {
            cwist_jq__request_text(request, acks->jobs[i]->receipt);
        }
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
    unsigned deletions = (unsigned)acks->alone + (together != 0 ? 1 : 0);
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

static int ack_plain(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
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

/* ---- jobs with dedupe keys, by themselves ---- */

typedef struct {
    cwist_jq__job *const *jobs;
    int *codes;
    bool unanswered;
} keyed_acks;

static void build_keyed_item(cwist_jq__redis_request *request, const cwist_jq__redis_work *work,
                             size_t item, bool whole)
{
    const keyed_acks *all = work->input;

    build_keyed(request, work->queue, all->jobs[item], whole);
}

static int take_keyed(const cwist_jq__redis_work *work, size_t item, const redisReply *reply,
                      bool unanswered)
{
    const keyed_acks *all = work->input;

    if (!cwist_jq__redis_is_number(reply)) {
        return cwist_jq__redis_odd_reply(work->command);
    }
    return reply->integer == 1 ? CWIST_SUCCESS
                               : cwist_jq__redis_not_ours(work->queue, all->jobs[item],
                                                          unanswered || all->unanswered);
}

static void note_keyed(const cwist_jq__redis_work *work, size_t item, int code)
{
    const keyed_acks *all = work->input;

    all->codes[item] = code;
}

static int ack_keyed(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                     bool unanswered, uint64_t deadline, int *codes)
{
    keyed_acks all = {jobs, codes, unanswered};
    cwist_jq__redis_work work = {.queue = queue,
                                 .deadline = deadline,
                                 .command = "EVALSHA (ack)",
                                 .repeatable = true,
                                 .input = &all,
                                 .build = build_keyed_item,
                                 .take = take_keyed,
                                 .note = note_keyed};

    return cwist_jq__redis_run_pieces(&work, count);
}

/* ---- both kinds ---- */

typedef int (*acker)(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                     bool unanswered, uint64_t deadline, int *codes);

/* Acks those of the jobs that have a key, or have none. */
static void ack_part(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count, bool keyed,
                     bool unanswered, uint64_t deadline, int *codes, cwist_jq__failure *failure)
{
    cwist_jq__job *part[CWIST_JQ_PIECE] = {NULL};
    int part_codes[CWIST_JQ_PIECE];
    size_t size = 0;

    for (size_t i = 0; i < count; i++) {
        if ((jobs[i]->key != NULL) == keyed) {
            part[size++] = jobs[i];
        }
    }
    acker ack = keyed ? ack_keyed : ack_plain;
    int status = ack(queue, part, size, unanswered, deadline, part_codes);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if ((jobs[i]->key != NULL) == keyed) {
            codes[i] = part_codes[at++];
            if (codes[i] == status && status != CWIST_SUCCESS) {
                cwist_jq__failure_note(failure, i, status);
            }
        }
    }
}

static int ack_mixed(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                     bool unanswered, uint64_t deadline, int *codes)
{
    cwist_jq__failure failure;

    failure.code = CWIST_SUCCESS;
    ack_part(queue, jobs, count, false, unanswered, deadline, codes, &failure);
    ack_part(queue, jobs, count, true, unanswered, deadline, codes, &failure);
    return cwist_jq__failure_tell(&failure);
}

int cwist_jq__redis_ack_again(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                              bool unanswered, uint64_t deadline, int *codes)
{
    size_t keyed = 0;

    for (size_t i = 0; i < count; i++) {
        keyed += jobs[i]->key != NULL ? 1 : 0;
    }
    acker ack = keyed == 0 ? ack_plain : keyed == count ? ack_keyed : ack_mixed;
    return ack(queue, jobs, count, unanswered, deadline, codes);
}

int cwist_jq__redis_ack(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                        uint64_t deadline, int *codes)
{
    return cwist_jq__redis_ack_again(queue, jobs, count, false, deadline, codes);
}
