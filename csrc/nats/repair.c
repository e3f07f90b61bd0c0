/*
 * Headers that libnats misreads. When a value is empty, which other publishers may well write, it
 * takes the whole next line for the value, or gives up at the end of the block. The stream hands
 * out the raw block, so in doubt it is read here.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

static int base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

size_t cwist_jq__decode_base64(char *text)
{
    unsigned bits = 0;
    int held = 0;
    char *out = text;

    for (const char *at = text; base64_digit(*at) >= 0; at++) {
        bits = (bits << 6 | (unsigned)base64_digit(*at)) & 0xFFFFFFu;
        held += 6;
        if (held >= 8) {
            held -= 8;
            *out++ = (char)(bits >> held & 0xFFu);
        }
    }
    *out = '\0';
    return (size_t)(out - text);
}

/* Adds "Name: value" to the message, the value without the spaces around it. */
static natsStatus add_line(natsMsg *message, char *line)
{
    char *colon = strchr(line, ':');

    if (colon == NULL || colon == line) {
        return NATS_OK;
    }
    *colon = '\0';
    char *value = colon + 1;
    value += strspn(value, " \t");
    size_t len = strlen(value);
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t')) {
        value[--len] = '\0';
    }
    return natsMsgHeader_Add(message, line, value);
}

/* Adds the lines of a block, which begins with the version line. */
static natsStatus add_block(natsMsg *message, char *block)
{
    natsStatus status = NATS_OK;
    char *at = strstr(block, "\r\n");

    while (status == NATS_OK && at != NULL && at[2] != '\0') {
        char *line = at + 2;
        at = strstr(line, "\r\n");
        if (at != NULL) {
            *at = '\0';
        }
        status = add_line(message, line);
    }
    return status;
}

int cwist_jq__with_headers(natsMsg **out, const natsMsg *like, cwist_jq__json encoded)
{
    natsMsg *fresh = NULL;
    char *block = cwist_jq__alloc(encoded.len + 1);
    natsStatus status = block != NULL ? NATS_OK : NATS_NO_MEMORY;

    if (status == NATS_OK) {
        cwist_jq__json_copy(encoded, block, encoded.len + 1);
        (void)cwist_jq__decode_base64(block);
        status = natsMsg_Create(&fresh, natsMsg_GetSubject(like), natsMsg_GetReply(like),
                                natsMsg_GetData(like), natsMsg_GetDataLength(like));
    }
    if (status == NATS_OK) {
        status = add_block(fresh, block);
    }
    cwist_jq__free(block);
    if (status != NATS_OK) {
        natsMsg_Destroy(fresh);
        return status == NATS_NO_MEMORY
                   ? cwist_jq__no_memory()
                   : cwist_jq__fail(CWIST_ERROR_PROTOCOL, "the headers cannot be read");
    }
    *out = fresh;
    return CWIST_SUCCESS;
}

int cwist_jq__repair_headers(cwist_jq__queue *queue, const char *stream, uint64_t sequence,
                             natsMsg **message, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    char subject[CWIST_JQ_SUBJECT_SIZE];
    char body[48];

    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.MSG.GET.%s", stream);
    (void)snprintf(body, sizeof body, "{\"seq\":%llu}", (unsigned long long)sequence);
    int status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, body, wait);
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "cannot read the message");
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__json stored = cwist_jq__json_member(answer.json, "message");
        natsMsg *fresh = NULL;
        status = cwist_jq__with_headers(&fresh, *message, cwist_jq__json_member(stored, "hdrs"));
        if (status == CWIST_SUCCESS) {
            natsMsg_Destroy(*message);
            *message = fresh;
        }
    }
    cwist_jq__answer_clear(&answer);
    return status;
}
