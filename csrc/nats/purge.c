/*
 * Purge. Delayed jobs go by their subjects. Ready ones are claimed and acked, so that no job goes
 * that a worker has got: a purge by sequence would make jobs in flight undeliverable on 2.9.10.
 * While the consumer is paused nobody gets any, and what it never delivered is deleted by sequence.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

/* ---- delayed jobs ---- */

static int purge_delayed(cwist_jq__queue *queue, const cwist_jq__wait *wait, uint64_t *count)
{
    const char *stream = cwist_jq__nats_queue_of(queue)->stream;
    cwist_jq__answer answer;
    char subject[CWIST_JQ_SUBJECT_SIZE];
    char body[CWIST_JQ_SUBJECT_SIZE];

    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.PURGE.%s", stream);
    (void)snprintf(body, sizeof body, "{\"filter\":\"%s=wait.>\"}", stream);
    int status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, body, wait);
    if (status == CWIST_SUCCESS && answer.error == 0) {
        *count += cwist_jq__json_count(answer.json, "purged");
    } else if (status == CWIST_SUCCESS) {
        status = cwist_jq__answer_fail(&answer, "cannot purge the delayed jobs");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

/* Purges the delayed jobs, and marks the end of what was there. */
static int begin(cwist_jq__queue *queue, const cwist_jq__wait *wait, uint64_t *mark,
                 uint64_t *count, bool *more)
{
    cwist_jq__answer answer;
    int status = cwist_jq__stream_info(&answer, queue, "", NULL, wait);
    bool there = status == CWIST_SUCCESS && answer.error == 0;

    if (there && cwist_jq__has_waiting(&answer, queue)) {
        cwist_jq__answer_clear(&answer);
        status = purge_delayed(queue, wait, count);
        if (status == CWIST_SUCCESS) { /* some became ready just before */
            status = cwist_jq__stream_info(&answer, queue, "", NULL, wait);
        }
    }
    if (there && status == CWIST_SUCCESS && answer.error == 0) {
        *mark = cwist_jq__json_count(cwist_jq__json_member(answer.json, "state"), "last_seq");
        *more = *mark != 0;
    } else if (status == CWIST_SUCCESS && !cwist_jq__answer_is_gone(&answer)) {
        status = cwist_jq__answer_fail(&answer, "stream info");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

/* ---- ready jobs, delivered to us ---- */

/* Acks those that were there in time and gives the others back. */
static int end_jobs(cwist_jq__queue *queue, cwist_jq__job **jobs, size_t got, uint64_t mark,
                    uint64_t deadline, uint64_t *count)
{
    int codes[CWIST_JQ_PIECE];
    size_t old = 0;

    for (size_t i = 0; i < got; i++) {
        cwist_jq__ticket ticket;
        bool is_old = cwist_jq__ticket_read(&ticket, jobs[i]->receipt) && ticket.sequence <= mark;
        if (is_old) {
            cwist_jq__job *job = jobs[i];
            jobs[i] = jobs[old];
            jobs[old++] = job;
        }
    }
    int status = old > 0 ? cwist_jq__nats_ack(queue, jobs, old, deadline, codes) : CWIST_SUCCESS;
    for (size_t i = 0; i < old; i++) {
        *count += codes[i] == CWIST_SUCCESS ? 1 : 0;
        cwist_jq__unref(jobs[i]);
    }
    cwist_jq__hand_back(queue, jobs + old, got - old);
    return status == CWIST_ERROR_LEASE_LOST ? CWIST_SUCCESS : status;
}

static int fetch_piece(cwist_jq__queue *queue, uint64_t deadline, uint64_t mark, uint64_t *count,
                       bool *more)
{
    cwist_jq__job *jobs[CWIST_JQ_PIECE];
    cwist_jq__claim *claim = cwist_jq__calloc(1, sizeof *claim);
    size_t got = 0;
    uint64_t newest = 0;

    if (claim == NULL) {
        return cwist_jq__no_memory();
    }
    claim->queue = queue;
    claim->most = CWIST_JQ_PIECE;
    claim->deadline = cwist_jq__now();
    claim->interrupts = atomic_load(&queue->interrupts);
    int status = cwist_jq__nats_claim_start(claim);
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__nats_claim_wait(claim, deadline, jobs, &got);
        cwist_jq__nats_claim_end(claim);
    }
    cwist_jq__free(claim);
    for (size_t i = 0; i < got; i++) {
        cwist_jq__ticket ticket;
        if (cwist_jq__ticket_read(&ticket, jobs[i]->receipt) && ticket.sequence > newest) {
            newest = ticket.sequence;
        }
    }
    if (got > 0) {
        status = end_jobs(queue, jobs, got, mark, deadline, count);
    }
    *more = got > 0 && newest < mark;
    return status == CWIST_ERROR_TIMEOUT ? CWIST_SUCCESS : status;
}

/* ---- ready jobs of a paused queue ---- */

/* The sequence of the first job at or behind `from`; 0 when there is none. */
static int first_from(uint64_t *sequence, cwist_jq__queue *queue, uint64_t from,
                      const cwist_jq__wait *wait)
{
    const char *stream = cwist_jq__nats_queue_of(queue)->stream;
    cwist_jq__answer answer;
    char body[CWIST_JQ_SUBJECT_SIZE];

    *sequence = 0;
    (void)snprintf(body, sizeof body, "{\"seq\":%llu,\"next_by_subj\":\"%s.>\"}",
                   (unsigned long long)from, stream);
    int status = cwist_jq__get_message(&answer, queue, "", body, wait);
    if (status == CWIST_SUCCESS && answer.error == 0) {
        *sequence = cwist_jq__json_count(cwist_jq__json_member(answer.json, "message"), "seq");
    } else if (status == CWIST_SUCCESS && !cwist_jq__answer_is_gone(&answer)) {
        status = cwist_jq__answer_fail(&answer, "cannot look for jobs");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

static int delete_range(cwist_jq__queue *queue, uint64_t first, size_t span,
                        const cwist_jq__wait *wait, uint64_t *count)
{
    cwist_jq__ask *asks = cwist_jq__calloc(span, sizeof *asks);
    char subject[CWIST_JQ_SUBJECT_SIZE];
    int status = asks != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();

    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.MSG.DELETE.%s",
                   cwist_jq__nats_queue_of(queue)->stream);
    for (size_t i = 0; i < span && status == CWIST_SUCCESS; i++) {
        asks[i].subject = subject;
        asks[i].body =
            cwist_jq__format("{\"seq\":%llu,\"no_erase\":true}", (unsigned long long)(first + i));
        status = asks[i].body != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__ask_all(cwist_jq__nats_of(queue), asks, span, wait);
    }
    for (size_t i = 0; asks != NULL && i < span; i++) {
        const cwist_jq__answer *answer = &asks[i].answer;
        bool done = answer->message != NULL && answer->error == 0;
        *count += done || (asks[i].lost && cwist_jq__answer_is_gone(answer)) ? 1 : 0;
        if (status == CWIST_SUCCESS && answer->error != 0 && !cwist_jq__answer_is_gone(answer)) {
            status = cwist_jq__answer_fail(answer, "cannot delete a job");
        }
    }
    if (asks != NULL) {
        cwist_jq__ask_clear(asks, span);
    }
    cwist_jq__free(asks);
    return status;
}

static int delete_piece(cwist_jq__queue *queue, const cwist_jq__wait *wait, uint64_t delivered,
                        uint64_t mark, uint64_t *count, bool *more)
{
    uint64_t first = 0;
    int status = first_from(&first, queue, delivered + 1, wait);

    if (status != CWIST_SUCCESS || first == 0 || first > mark) {
        return status;
    }
    uint64_t span = mark - first + 1;
    span = span < CWIST_JQ_BURST_MAX ? span : CWIST_JQ_BURST_MAX;
    *more = true;
    return delete_range(queue, first, (size_t)span, wait, count);
}

int cwist_jq__nats_purge(cwist_jq__queue *queue, uint64_t deadline, uint64_t *mark, uint64_t *count,
                         bool *more)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__answer answer;

    *more = false;
    if (*mark == 0) {
        return begin(queue, &wait, mark, count, more);
    }
    int status = cwist_jq__make_consumer(queue, &wait);
    if (status != CWIST_SUCCESS) {
        return status;
    }
    status = cwist_jq__consumer_info(&answer, queue, &wait);
    bool paused = status == CWIST_SUCCESS && answer.error == 0 &&
                  cwist_jq__json_true(cwist_jq__json_member(answer.json, "paused"));
    uint64_t delivered =
        cwist_jq__json_count(cwist_jq__json_member(answer.json, "delivered"), "stream_seq");
    cwist_jq__answer_clear(&answer);
    if (status != CWIST_SUCCESS) {
        return status;
    }
    return paused ? delete_piece(queue, &wait, delivered, *mark, count, more)
                  : fetch_piece(queue, deadline, *mark, count, more);
}
