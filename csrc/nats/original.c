/*
 * What a message replaces. A release that was cut leaves the original beside its copy, and a dead
 * letter that was being requeued may still be there; so whoever claims the newer one deletes the
 * other. A sequence alone does not name it: the stream may have been made anew since.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

natsMsg *cwist_jq__stored_headers(cwist_jq__json stored)
{
    natsMsg *message = NULL;
    natsMsg *bare = NULL;

    if (natsMsg_Create(&bare, "stored", NULL, NULL, 0) == NATS_OK) {
        (void)cwist_jq__with_headers(&message, bare, cwist_jq__json_member(stored, "hdrs"));
    }
    natsMsg_Destroy(bare);
    return message;
}

/* True when the stored message, which is there under that sequence, is the same job. */
static bool is_same_job(cwist_jq__json stored, const cwist_jq__origin *origin, uint64_t sequence)
{
    natsMsg *message = cwist_jq__stored_headers(stored);
    uint64_t first = 0;
    bool same = false;

    if (message == NULL) {
        return false;
    }
    const char *id = cwist_jq__header_of(message, "Cwist-Id");
    if (id != NULL) {
        same = strcmp(id, origin->id) == 0 &&
               cwist_jq__decimal(&first, cwist_jq__header_of(message, "Cwist-First")) &&
               first == origin->first;
    } else {
        char number[CWIST_JQ_DIGITS + 1];
        (void)cwist_jq__put_number(number, sequence);
        uint64_t time = cwist_jq__moment_read(cwist_jq__json_member(stored, "time"));
        same = strcmp(number, origin->id) == 0 && time == origin->first;
    }
    natsMsg_Destroy(message);
    return same;
}

bool cwist_jq__is_copy_of(cwist_jq__json stored, uint64_t sequence)
{
    natsMsg *message = cwist_jq__stored_headers(stored);
    uint64_t from = 0;
    bool is = message != NULL &&
              cwist_jq__decimal(&from, cwist_jq__header_of(message, "Cwist-From")) &&
              from == sequence;

    natsMsg_Destroy(message);
    return is;
}

/* Deletes the message of the stream "<q><suffix>" if it is the same job. */
static int delete_one(cwist_jq__queue *queue, const char *suffix, uint64_t sequence,
                      const cwist_jq__origin *origin, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    char body[48];
    bool found = false;

    (void)snprintf(body, sizeof body, "{\"seq\":%llu}", (unsigned long long)sequence);
    int status = cwist_jq__get_message(&answer, queue, suffix, body, wait);
    if (status == CWIST_SUCCESS && answer.error == 0) {
        found = is_same_job(cwist_jq__json_member(answer.json, "message"), origin, sequence);
    }
    cwist_jq__answer_clear(&answer);
    return found ? cwist_jq__delete_message(queue, suffix, sequence, wait) : status;
}

int cwist_jq__delete_replaced(cwist_jq__queue *queue, const cwist_jq__origin *origin,
                              const cwist_jq__wait *wait)
{
    int status = CWIST_SUCCESS;

    if (origin->from != 0) {
        status = delete_one(queue, "", origin->from, origin, wait);
    }
    if (status == CWIST_SUCCESS && origin->dead != 0) {
        status = delete_one(queue, "_DEAD", origin->dead, origin, wait);
    }
    return status;
}
