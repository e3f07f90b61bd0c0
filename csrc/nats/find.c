/* One dead letter by its id, which its subject holds. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

/* Undoes base64 of a stored payload. *payload is yours to free; NULL when it is empty. */
static int read_payload(void **payload, size_t *len, cwist_jq__json stored)
{
    cwist_jq__json data = cwist_jq__json_member(stored, "data");

    *payload = NULL;
    *len = 0;
    if (data.text == NULL || data.len <= 2) {
        return CWIST_SUCCESS;
    }
    char *text = cwist_jq__alloc(data.len + 1);
    if (text == NULL) {
        return cwist_jq__no_memory();
    }
    cwist_jq__json_copy(data, text, data.len + 1);
    *len = cwist_jq__decode_base64(text);
    *payload = text;
    return CWIST_SUCCESS;
}

/* A stored message, as the API hands it out, as a letter of the page. */
static int add_stored(cwist_job_dead_page_t *page, const cwist_jq__queue *queue,
                      cwist_jq__json stored, bool with_payload)
{
    char subject[CWIST_JQ_SUBJECT_SIZE];
    cwist_jq__found found = {0, 0, 0, NULL};
    cwist_jq__fields fields;
    natsMsg *bare = NULL;
    natsMsg *message = NULL;
    void *payload = NULL;
    int status = read_payload(&payload, &found.len, stored);

    memset(&fields, 0, sizeof fields);
    cwist_jq__json_copy(cwist_jq__json_member(stored, "subject"), subject, sizeof subject);
    found.sequence = cwist_jq__json_count(stored, "seq");
    found.died_ms = cwist_jq__moment_read(cwist_jq__json_member(stored, "time"));
    found.payload = with_payload ? payload : NULL;
    if (status == CWIST_SUCCESS && natsMsg_Create(&bare, subject, NULL, NULL, 0) != NATS_OK) {
        status = cwist_jq__no_memory();
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__with_headers(&message, bare, cwist_jq__json_member(stored, "hdrs"));
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__fields_read(&fields, message);
        status = cwist_jq__letter_add(page, queue, message, &fields, &found);
    }
    cwist_jq__fields_clear(&fields);
    natsMsg_Destroy(message);
    natsMsg_Destroy(bare);
    cwist_jq__free(payload);
    return status;
}

int cwist_jq__nats_dead_find(cwist_jq__queue *queue, const char *id, bool payload,
                             uint64_t deadline, cwist_job_dead_page_t *page)
{
    const char *stream = cwist_jq__nats_queue_of(queue)->stream;
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__answer answer;
    char body[CWIST_JQ_SUBJECT_SIZE];
    uint64_t number = 0;

    if (!cwist_jq__decimal(&number, id)) {
        return cwist_jq__fail(CWIST_ERROR_NOT_FOUND, "no dead letter has the id %s", id);
    }
    (void)snprintf(body, sizeof body, "{\"last_by_subj\":\"%s.dead.%s.*\"}", stream, id);
    int status = cwist_jq__get_message(&answer, queue, "_DEAD", body, &wait);
    if (status == CWIST_SUCCESS && answer.error == 0) {
        status = add_stored(page, queue, cwist_jq__json_member(answer.json, "message"), payload);
    } else if (status == CWIST_SUCCESS && cwist_jq__answer_is_gone(&answer)) {
        status = cwist_jq__fail(CWIST_ERROR_NOT_FOUND, "no dead letter has the id %s", id);
    } else if (status == CWIST_SUCCESS) {
        status = cwist_jq__answer_fail(&answer, "cannot read the dead letter");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}
