/*
 * A server below 2.10 that was killed can keep messages that were acked: they stay in the stream at
 * or below the consumer's ack floor, and no consumer is ever given them. A handle's first claim
 * deletes them, one by one: to purge up to a sequence would make the jobs in flight undeliverable.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

#define SWEEP_MAX 512

bool cwist_jq__answer_is_gone(const cwist_jq__answer *answer)
{
    return answer->http == 404 || answer->error == CWIST_JQ_ERR_SEQUENCE_GONE ||
           answer->error == CWIST_JQ_ERR_NO_MESSAGE || answer->error == CWIST_JQ_ERR_DELETE_FAILED;
}

int cwist_jq__delete_message(cwist_jq__queue *queue, const char *suffix, uint64_t sequence,
                             const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    char body[64];
    char subject[CWIST_JQ_SUBJECT_SIZE];

    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.MSG.DELETE.%s%s",
                   cwist_jq__nats_queue_of(queue)->stream, suffix);
    (void)snprintf(body, sizeof body, "{\"seq\":%llu,\"no_erase\":true}",
                   (unsigned long long)sequence);
    int status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, body, wait);
    if (status == CWIST_SUCCESS && answer.error != 0 && !cwist_jq__answer_is_gone(&answer)) {
        status = cwist_jq__answer_fail(&answer, "cannot delete a message");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

/* The sequence of the first job at or after `from`; INT64_MAX when there is none. */
static int next_job(int64_t *sequence, cwist_jq__queue *queue, int64_t from,
                    const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;
    char *body =
        cwist_jq__format("{\"seq\":%lld,\"next_by_subj\":\"%s.>\"}", (long long)from, own->stream);

    *sequence = INT64_MAX;
    memset(&answer, 0, sizeof answer);
    int status = body != NULL ? cwist_jq__get_message(&answer, queue, "", body, wait)
                              : cwist_jq__no_memory();
    if (status == CWIST_SUCCESS && answer.error == 0) {
        cwist_jq__json message = cwist_jq__json_member(answer.json, "message");
        *sequence = cwist_jq__json_int(cwist_jq__json_member(message, "seq"), INT64_MAX);
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(body);
    return status;
}

/* The first and last sequence of the stream. */
static int bounds(int64_t *first, int64_t *last, cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    int status = cwist_jq__stream_info(&answer, queue, "", NULL, wait);

    *first = 0;
    *last = -1;
    if (status == CWIST_SUCCESS && answer.error == 0) {
        cwist_jq__json state = cwist_jq__json_member(answer.json, "state");
        if (cwist_jq__json_int(cwist_jq__json_member(state, "messages"), 0) > 0) {
            *first = cwist_jq__json_int(cwist_jq__json_member(state, "first_seq"), 0);
            *last = cwist_jq__json_int(cwist_jq__json_member(state, "last_seq"), -1);
        }
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

int cwist_jq__sweep(cwist_jq__queue *queue, int64_t floor, const cwist_jq__wait *wait)
{
    int64_t first = 0;
    int64_t last = -1;
    int status = CWIST_SUCCESS;

    if (floor <= 0 || !cwist_jq__nats_of(queue)->below_2_10) {
        return CWIST_SUCCESS;
    }
    status = bounds(&first, &last, queue, wait);
    /*
     * A floor beyond the stream's end belongs to a stream that lost its own end: what is stored
     * there may be new jobs, so nothing is touched.
     */
    if (status != CWIST_SUCCESS || floor > last) {
        return status;
    }
    for (int count = 0; status == CWIST_SUCCESS && first <= floor && count < SWEEP_MAX; count++) {
        status = next_job(&first, queue, first, wait);
        if (status == CWIST_SUCCESS && first <= floor) {
            status = cwist_jq__delete_message(queue, "", (uint64_t)first, wait);
            first++;
        }
    }
    return status;
}
