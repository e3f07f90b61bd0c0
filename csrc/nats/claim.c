/* Claims: what a claim waits for, how long, and what it makes of the server's answers. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

/* claim->impl */
typedef struct state {
    cwist_jq__puller *puller;  /* NULL: none yet */
    bool polled;               /* what was ready has been taken: now one job is waited for */
    uint64_t give_up;          /* the latest moment for anything; later than a poll's deadline */
    bool extended;             /* the server was silent but there: a little more time was given */
    bool silent;               /* the server was given up: it is not waited for again */
    bool answered;             /* the server ended a pull of this claim by itself */
    cwist_jq__backoff backoff; /* after answers that are no use */
    char refused[120];         /* the server's words when it would not take the pull */
} state;

int cwist_jq__nats_claim_start(cwist_jq__claim *claim)
{
    state *own = cwist_jq__calloc(1, sizeof *own);

    if (own == NULL) {
        return cwist_jq__no_memory();
    }
    own->give_up =
        cwist_jq__add_ms(claim->deadline, cwist_jq__late_ms(cwist_jq__nats_of(claim->queue)));
    if (!atomic_load(&cwist_jq__nats_queue_of(claim->queue)->visibility_set)) {
        /* The handle's first claim: it makes streams and a consumer. */
        uint64_t setup = cwist_jq__after_ms(cwist_jq__setup_ms(cwist_jq__nats_of(claim->queue)));
        own->give_up = own->give_up > setup ? own->give_up : setup;
    }
    claim->impl = own;
    return CWIST_SUCCESS;
}

uint64_t cwist_jq__lease_end(const cwist_jq__queue *queue, uint64_t start)
{
    uint64_t visibility = cwist_jq__lease_ms(queue);
    uint64_t margin = visibility / 20;

    margin = margin < 20 ? 20 : margin > 1000 ? 1000 : margin;
    /* Of a very short visibility half is left, or no job could ever be settled. */
    margin = margin < visibility / 2 ? margin : visibility / 2;
    return cwist_jq__add_ms(start, visibility - margin);
}

/*
 * Reads the headers that are the job's own. What libnats cannot read is read again from the stream;
 * IO when the server did not answer in time.
 */
static int read_fields(cwist_jq__fields *fields, cwist_jq__queue *queue, natsMsg **message,
                       const cwist_jq__wait *wait)
{
    cwist_jq__ticket ticket;
    int status = CWIST_SUCCESS;

    cwist_jq__fields_read(fields, *message);
    if (fields->suspect && cwist_jq__ticket_read(&ticket, natsMsg_GetReply(*message))) {
        status = cwist_jq__repair_headers(queue, cwist_jq__nats_queue_of(queue)->stream,
                                          ticket.sequence, message, wait);
        if (status == CWIST_SUCCESS) {
            cwist_jq__fields_clear(fields);
            cwist_jq__fields_read(fields, *message);
        }
    }
    return fields->failed ? cwist_jq__no_memory() : status;
}

static void free_message(void *message)
{
    natsMsg_Destroy(message);
}

/*
 * Makes a job of a delivery, which is given away. *job stays NULL when the delivery is of no use:
 * its lease is over, or what is needed of it could not be read in time; then it comes back.
 */
static int make_job(cwist_jq__job **job, cwist_jq__queue *queue, natsMsg *message, uint64_t arrived)
{
    uint64_t lease_ends = cwist_jq__lease_end(queue, arrived);
    cwist_jq__wait wait = {
        cwist_jq__earlier(lease_ends, cwist_jq__after_ms(queue->conn->operation_timeout_ms)), NULL};
    cwist_jq__origin origin;
    cwist_jq__delivery delivery;
    cwist_jq__fields fields;
    char key[CWIST_JQ_KEY_MAX + 1];

    *job = NULL;
    if (cwist_jq__passed(lease_ends)) {
        natsMsg_Destroy(message);
        return CWIST_SUCCESS;
    }
    int status = read_fields(&fields, queue, &message, &wait);
    if (status == CWIST_ERROR_IO || fields.failed) {
        cwist_jq__fields_clear(&fields);
        natsMsg_Destroy(message);
        return status == CWIST_ERROR_IO ? CWIST_SUCCESS : status;
    }
    cwist_jq__origin_read(&origin, message);
    if (origin.from != 0 || origin.dead != 0) {
        /* A move that was cut leaves both. A failure here only makes the job run twice. */
        (void)cwist_jq__delete_replaced(queue, &origin, &wait);
    }
    memset(&delivery, 0, sizeof delivery);
    uint64_t attempts = origin.spent + origin.ticket.delivered;
    delivery.id = origin.id != NULL ? origin.id : "0";
    delivery.id_len = strlen(delivery.id);
    delivery.type = origin.type;
    delivery.type_len = origin.type_len;
    delivery.receipt = natsMsg_GetReply(message);
    delivery.receipt_len = strlen(delivery.receipt);
    const char *token = cwist_jq__key_token(queue, natsMsg_GetSubject(message));
    delivery.key_len = token != NULL ? cwist_jq__key_read(key, token) : 0;
    delivery.key = delivery.key_len != 0 ? key : NULL;
    delivery.headers = fields.list;
    delivery.header_count = fields.count;
    delivery.payload = natsMsg_GetData(message);
    delivery.payload_len = (size_t)natsMsg_GetDataLength(message);
    delivery.attempts = attempts < UINT32_MAX ? (uint32_t)attempts : UINT32_MAX;
    delivery.malformed = origin.malformed;
    delivery.lease_starts = arrived;
    delivery.lease_ends = lease_ends;
    delivery.body = message;
    delivery.body_free = free_message;
    status = cwist_jq__job_new(job, queue, &delivery);
    cwist_jq__fields_clear(&fields);
    return status;
}

/*
 * The server is there, and something on it must be made again: even a claim whose time is over is
 * given the time for that, once.
 */
static void give_time(cwist_jq__claim *claim)
{
    state *own = claim->impl;
    uint64_t more = cwist_jq__after_ms(cwist_jq__setup_ms(cwist_jq__nats_of(claim->queue)));

    if (!own->extended && own->give_up < more) {
        own->extended = true;
        own->give_up = more;
    }
}

/* What a status message of the server means for the claim. */
static int take_status(cwist_jq__claim *claim, natsMsg *message, const cwist_jq__wait *wait)
{
    state *own = claim->impl;
    const char *code = cwist_jq__header_of(message, "Status");
    const char *words = cwist_jq__header_of(message, "Description");

    if (code == NULL || strcmp(code, "100") == 0) {
        return CWIST_SUCCESS; /* a sign of life: the pull goes on */
    }
    own->puller->asked = false;
    own->refused[0] = '\0';
    if (strcmp(code, "404") == 0 || strcmp(code, "408") == 0) {
        own->answered = true;
        own->backoff.tries = 0;
        return CWIST_SUCCESS;
    }
    (void)snprintf(own->refused, sizeof own->refused, "%s %s", code, words != NULL ? words : "");
    cwist_jq__forget(claim->queue);
    give_time(claim);
    return cwist_jq__wait_backoff(wait, &own->backoff);
}

/*
 * The pull's own time is over and the server said nothing: it is gone, or stream or consumer are
 * (2.9 is silent then). Any answer tells that it is there; then the pull is given up for another.
 * *job is set when it brought something after all.
 */
static int take_silence(cwist_jq__job **job, cwist_jq__claim *claim, const cwist_jq__wait *wait)
{
    state *own = claim->impl;
    int status = cwist_jq__find_jobs(claim->queue, wait);

    if (status != CWIST_SUCCESS && status != CWIST_ERROR_LEASE_LOST) {
        return status;
    }
    natsMsg *message = cwist_jq__pull_cancel(claim->queue, own->puller);
    uint64_t arrived = own->puller->empty;
    cwist_jq__puller_free(own->puller);
    own->puller = NULL;
    cwist_jq__forget(claim->queue);
    give_time(claim);
    return message != NULL ? make_job(job, claim->queue, message, arrived) : CWIST_SUCCESS;
}

/* What the inbox gave, as of cwist_jq__pull_next(); the message is given away. */
static int take(cwist_jq__job **job, cwist_jq__claim *claim, natsMsg *message, int status,
                const cwist_jq__wait *wait)
{
    state *own = claim->impl;

    if (status == CWIST_SUCCESS && cwist_jq__is_delivery(message)) {
        own->backoff.tries = 0;
        return make_job(job, claim->queue, message, own->puller->empty);
    }
    if (status == CWIST_SUCCESS) {
        status = take_status(claim, message, wait);
    } else if (status == CWIST_JQ_NO_RESPONDERS) {
        own->puller->asked = false;
        cwist_jq__forget(claim->queue);
        give_time(claim);
        status = cwist_jq__wait_backoff(wait, &own->backoff);
    }
    natsMsg_Destroy(message);
    return status;
}

/* How long one look may take: short against the lease, which begins with it. */
static uint64_t short_slice(const cwist_jq__claim *claim)
{
    uint64_t slice = cwist_jq__lease_ms(claim->queue) / 10;

    return slice < 1 ? 1 : slice > CWIST_JQ_SLICE_MS ? CWIST_JQ_SLICE_MS : slice;
}

/* The same, and short against the server's last word. */
static uint64_t slice_of(const cwist_jq__claim *claim, uint64_t speaks_by,
                         const cwist_jq__wait *wait)
{
    const state *own = claim->impl;
    uint64_t slice = short_slice(claim);

    if (cwist_jq__passed(own->puller->ends)) {
        uint64_t left = cwist_jq__ms_left(speaks_by);
        slice = slice < left ? slice : left;
    }
    return (uint64_t)cwist_jq__wait_slice(wait, slice);
}

/* One look at the inbox. SUCCESS with or without a job. Questions have until `patient`. */
static int look(cwist_jq__job **job, cwist_jq__claim *claim, const cwist_jq__wait *wait,
                const cwist_jq__wait *patient)
{
    state *own = claim->impl;
    natsMsg *message = NULL;
    uint64_t patience = cwist_jq__late_ms(cwist_jq__nats_of(claim->queue)) / 2;
    uint64_t speaks_by = cwist_jq__add_ms(own->puller->ends, patience);
    int status =
        cwist_jq__pull_next(&message, claim->queue, own->puller, slice_of(claim, speaks_by, wait));

    if (status == CWIST_JQ_PENDING && cwist_jq__passed(speaks_by)) {
        status = take_silence(job, claim, patient);
        if (status == CWIST_ERROR_IO) { /* it may have come meanwhile */
            int late = cwist_jq__pull_next(&message, claim->queue, own->puller, 0);
            status = late == CWIST_JQ_PENDING ? status : take(job, claim, message, late, wait);
        }
        return status;
    }
    return take(job, claim, message, status, wait);
}

/* Sees to it that a pull is under way. */
static int ask(cwist_jq__claim *claim, const cwist_jq__wait *wait)
{
    state *own = claim->impl;
    int status = CWIST_SUCCESS;

    if (own->puller != NULL && own->puller->asked) {
        return CWIST_SUCCESS;
    }
    if (own->answered && cwist_jq__passed(claim->deadline)) {
        return cwist_jq__fail(CWIST_ERROR_TIMEOUT, "no job came in time");
    }
    status = cwist_jq__ensure_consumer(claim->queue, wait);
    if (status == CWIST_SUCCESS && own->puller == NULL) {
        status = cwist_jq__puller_take(&own->puller, claim->queue, CWIST_JQ_ALONE, wait);
        status = status == CWIST_JQ_PENDING ? CWIST_ERROR_IO : status; /* its text says why */
    }
    if (status == CWIST_SUCCESS) {
        own->answered = false;
        status = cwist_jq__pull(claim->queue, own->puller, claim->deadline);
    }
    return status;
}

/*
 * What becomes of the claim when a step did not get what it wanted in the time that it had.
 * SUCCESS: go on.
 */
static int weigh(cwist_jq__claim *claim, uint64_t until, int status)
{
    state *own = claim->impl;

    if (status == CWIST_JQ_LOST || status == CWIST_JQ_UNSENT) {
        cwist_jq__puller_free(own->puller); /* its link is broken */
        own->puller = NULL;
        status = cwist_jq__fail(CWIST_ERROR_IO, "the connection broke");
    }
    if (status != CWIST_SUCCESS && status != CWIST_JQ_PENDING && status != CWIST_ERROR_IO) {
        return status;
    }
    if (cwist_jq__passed(own->give_up)) {
        own->silent = true;
        if (own->refused[0] != '\0') {
            return cwist_jq__fail(CWIST_ERROR_REFUSED, "the server said: %s", own->refused);
        }
        return status == CWIST_ERROR_IO
                   ? status
                   : cwist_jq__fail(CWIST_ERROR_IO, "the server did not answer in time");
    }
    if (cwist_jq__passed(until) && !cwist_jq__passed(claim->deadline)) {
        return CWIST_JQ_PENDING;
    }
    return CWIST_SUCCESS;
}

/* Waits for one job. */
static int await_one(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **job)
{
    state *own = claim->impl;
    int status = CWIST_SUCCESS;

    *job = NULL;
    while (status == CWIST_SUCCESS && *job == NULL) {
        /* Past its deadline a claim has a little time left, for the server's last word. */
        uint64_t end = cwist_jq__passed(claim->deadline) ? own->give_up : claim->deadline;
        uint64_t distance = cwist_jq__setup_far_ms(cwist_jq__nats_of(claim->queue));
        cwist_jq__wait wait = {end, claim};
        /* A slice may be shorter than the way to the server and back. */
        cwist_jq__wait patient = {cwist_jq__earlier(end, cwist_jq__add_ms(until, distance)), claim};
        if (cwist_jq__passed(claim->deadline)) {
            patient.deadline = end;
        } else {
            wait.deadline = cwist_jq__earlier(end, until);
        }
        status = cwist_jq__claim_check(claim);
        if (status != CWIST_SUCCESS) {
            break;
        }
        status = ask(claim, &patient);
        if (status == CWIST_SUCCESS) {
            status = look(job, claim, &wait, &patient);
        }
        if (*job == NULL) {
            status = weigh(claim, until, status);
        }
    }
    return status;
}

/* ---- batches ---- */

/* Adds the job of a delivery; one that is of no use comes back when its lease is over. */
static void keep_job(cwist_jq__claim *claim, natsMsg *message, cwist_jq__job **jobs, size_t *count)
{
    state *own = claim->impl;
    cwist_jq__job *job = NULL;

    if (make_job(&job, claim->queue, message, own->puller->empty) == CWIST_SUCCESS && job != NULL) {
        jobs[(*count)++] = job;
    }
}

/* The server's word that a poll has brought all. What is amiss shows when one job is waited for. */
static void end_poll(cwist_jq__claim *claim, natsMsg *message)
{
    state *own = claim->impl;
    const char *code = cwist_jq__header_of(message, "Status");

    own->puller->asked = code != NULL && strcmp(code, "100") == 0;
}

/* Takes what a poll brings, up to the server's last word, or until it has been silent a while. */
static void gather(cwist_jq__claim *claim, cwist_jq__job **jobs, size_t *count)
{
    state *own = claim->impl;
    cwist_jq__puller *puller = own->puller;
    uint64_t patience = cwist_jq__late_ms(cwist_jq__nats_of(claim->queue));
    uint64_t speaks_by = cwist_jq__after_ms(patience);
    int status = CWIST_SUCCESS;

    while (puller->asked && !cwist_jq__passed(speaks_by)) {
        natsMsg *message = NULL;
        status = cwist_jq__pull_next(&message, claim->queue, puller, short_slice(claim));
        if (status == CWIST_SUCCESS && cwist_jq__is_delivery(message)) {
            keep_job(claim, message, jobs, count);
            speaks_by = cwist_jq__after_ms(patience);
            continue;
        }
        if (status == CWIST_SUCCESS) {
            end_poll(claim, message);
        } else if (status != CWIST_JQ_PENDING) {
            puller->asked = false;
        } else if (cwist_jq__claim_check(claim) != CWIST_SUCCESS) {
            break; /* what is still on its way is handed back by claim_end */
        }
        natsMsg_Destroy(message);
    }
}

/* Leaves nothing under way of a poll that the server did not end, and the puller for the next. */
static void end_gathering(cwist_jq__claim *claim, cwist_jq__job **jobs, size_t *count)
{
    state *own = claim->impl;
    natsMsg *message = NULL;

    if (own->puller->asked && cwist_jq__claim_check(claim) != CWIST_SUCCESS) {
        return;
    }
    while (own->puller->asked &&
           (message = cwist_jq__pull_cancel(claim->queue, own->puller)) != NULL) {
        keep_job(claim, message, jobs, count);
    }
    if (own->puller->asked || own->puller->draining || own->puller->link->for_bursts) {
        cwist_jq__puller_give(claim->queue, own->puller);
        own->puller = NULL;
    }
}

/*
 * Takes up to `most` jobs that are ready. It tells of no failure: who then waits for one job meets
 * it again.
 */
static void poll_ready(cwist_jq__claim *claim, uint64_t until, size_t most, cwist_jq__job **jobs,
                       size_t *count)
{
    state *own = claim->impl;
    cwist_jq__wait wait = {cwist_jq__earlier(own->give_up, until), claim};
    bool below = cwist_jq__nats_of(claim->queue)->below_2_10;
    size_t before = 0;

    do {
        before = *count;
        int status = cwist_jq__ensure_consumer(claim->queue, &wait);
        if (status == CWIST_SUCCESS && own->puller == NULL) {
            status = cwist_jq__puller_take(&own->puller, claim->queue, CWIST_JQ_ALONE, &wait);
        }
        if (status != CWIST_SUCCESS || own->puller->asked) {
            return;
        }
        if (cwist_jq__poll(claim->queue, own->puller, most - *count) == CWIST_SUCCESS) {
            gather(claim, jobs, count);
        } else {
            own->puller->asked = false;
        }
        end_gathering(claim, jobs, count);
    } while (below && *count > before && *count < most); /* there a poll is for fewer */
}

int cwist_jq__nats_claim_wait(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs,
                              size_t *count)
{
    state *own = claim->impl;

    *count = 0;
    if (claim->most > 1 && !own->polled) {
        own->polled = true;
        poll_ready(claim, until, claim->most, jobs, count);
    }
    if (*count == 0) {
        int status = await_one(claim, until, jobs);
        if (status != CWIST_SUCCESS) {
            return status;
        }
        *count = 1;
        if (claim->most > 1) { /* seldom does one come alone */
            poll_ready(claim, until, claim->most, jobs, count);
        }
    }
    own->polled = false;
    return CWIST_SUCCESS;
}

int cwist_jq__nats_ack_and_poll(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                                int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got)
{
    state *own = claim->impl;
    cwist_jq__wait wait = {deadline, claim};

    *got = 0;
    if (cwist_jq__claim_check(claim) == CWIST_SUCCESS) {
        (void)cwist_jq__puller_take(&own->puller, claim->queue, CWIST_JQ_TOGETHER, &wait);
    }
    cwist_jq__nats_ack_with_pull(claim->queue, jobs, count, own->puller, claim->most, deadline,
                                 codes);
    if (own->puller != NULL) {
        gather(claim, next, got);
        end_gathering(claim, next, got);
    }
    if (*got != 0 && *got < claim->most && cwist_jq__nats_of(claim->queue)->below_2_10) {
        poll_ready(claim, deadline, claim->most, next, got);
    }
    own->polled = *got == 0;
    return CWIST_SUCCESS;
}

/* ---- the end ---- */

/* Hands back what was on its way to a claim that is given up. */
static void return_rest(cwist_jq__claim *claim, cwist_jq__puller *puller)
{
    size_t wanted = puller->wanted;
    cwist_jq__job **jobs = cwist_jq__calloc(wanted, sizeof *jobs);
    natsMsg *message = NULL;
    size_t count = 0;

    while ((message = cwist_jq__pull_cancel(claim->queue, puller)) != NULL) {
        if (jobs != NULL && count < wanted) {
            keep_job(claim, message, jobs, &count);
        } else {
            natsMsg_Destroy(message);
        }
    }
    cwist_jq__hand_back(claim->queue, jobs, count);
    cwist_jq__free(jobs);
}

void cwist_jq__nats_claim_end(cwist_jq__claim *claim)
{
    state *own = claim->impl;

    if (own->puller != NULL && own->puller->asked && !own->silent) {
        return_rest(claim, own->puller);
    }
    cwist_jq__puller_give(claim->queue, own->puller);
    cwist_jq__free(own);
    claim->impl = NULL;
}
