/* A dead letter, read out of its message and added to a page. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes the percent-encoding of a reason, in place. */
static void decode_reason(char *text)
{
    char *out = text;

    for (const char *at = text; *at != '\0'; at++) {
        int high = *at == '%' ? hex_digit(at[1]) : -1;
        int low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low >= 0) {
            *out++ = (char)(high << 4 | low);
            at += 2;
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
}

/* The part of the subject "<q>.dead.<id>.<first>[-<number>]" that begins with the id; or NULL. */
static const char *name_of(const cwist_jq__queue *queue, const char *subject)
{
    const char *stream = cwist_jq__nats_queue_of(queue)->stream;
    size_t len = strlen(stream);

    return strncmp(subject, stream, len) == 0 && strncmp(subject + len, ".dead.", 6) == 0
               ? subject + len + 6
               : NULL;
}

/* What a letter without headers still tells by its subject: a foreign publisher left no room. */
static void read_name(cwist_jq__letter *letter, char *id, const char *name)
{
    size_t digits = strspn(name, "0123456789");
    uint64_t first = 0;

    if (digits == 0 || digits > CWIST_JQ_DIGITS) {
        return;
    }
    memcpy(id, name, digits);
    id[digits] = '\0';
    letter->told.id = id;
    for (const char *at = name + digits + 1; name[digits] == '.' && *at >= '0' && *at <= '9';
         at++) {
        first = first * 10 + (uint64_t)(*at - '0');
    }
    letter->told.first_ms = first;
}

/* The strings that must be changed to be told, and the numbers; they live as long as the call. */
typedef struct texts {
    char id[CWIST_JQ_DIGITS + 1];
    char place[CWIST_JQ_DIGITS + 1];
    char *type;
    char *reason;
} texts;

static int read_texts(texts *t, natsMsg *message)
{
    const char *reason = cwist_jq__header_of(message, "Cwist-Reason");
    const char *plain = cwist_jq__header_of(message, "Cwist-Type");
    const char *quoted = cwist_jq__header_of(message, "Cwist-Type-Quoted");
    size_t len = quoted != NULL ? strlen(quoted) : 0;
    bool failed = false;

    if (reason != NULL) {
        t->reason = cwist_jq__strdup(reason);
        failed = t->reason == NULL;
    }
    if (quoted != NULL && len >= 2) {
        t->type = cwist_jq__strndup(quoted + 1, len - 2);
        failed = failed || t->type == NULL;
    } else if (plain != NULL && *plain != '\0') {
        t->type = cwist_jq__strdup(plain);
        failed = failed || t->type == NULL;
    }
    if (t->reason != NULL) {
        decode_reason(t->reason);
    }
    return failed ? cwist_jq__no_memory() : CWIST_SUCCESS;
}

static void read_headers(cwist_jq__letter *letter, natsMsg *message)
{
    uint64_t number = 0;
    const char *id = cwist_jq__header_of(message, "Cwist-Id");

    if (cwist_jq__decimal(&number, id)) {
        letter->told.id = id;
    }
    if (cwist_jq__decimal(&number, cwist_jq__header_of(message, "Cwist-First"))) {
        letter->told.first_ms = number;
    }
    if (cwist_jq__decimal(&number, cwist_jq__header_of(message, "Cwist-Attempts"))) {
        letter->told.attempts = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    }
    const char *cause = cwist_jq__header_of(message, "Cwist-Cause");
    letter->told.cause = cause != NULL ? cause : ""; /* its headers were dropped */
    letter->told.consumer = cwist_jq__header_of(message, "Cwist-Consumer");
}

static int add_headers(cwist_jq__letter *letter, cwist_job_header_t **headers,
                       const cwist_jq__fields *fields)
{
    if (fields->failed) {
        return cwist_jq__no_memory();
    }
    if (fields->count == 0) {
        return CWIST_SUCCESS;
    }
    *headers = cwist_jq__calloc(fields->count, sizeof **headers);
    if (*headers == NULL) {
        return cwist_jq__no_memory();
    }
    for (size_t i = 0; i < fields->count; i++) {
        (*headers)[i] = (cwist_job_header_t){fields->list[i].name, fields->list[i].value};
    }
    letter->told.headers = *headers;
    letter->told.header_count = fields->count;
    return CWIST_SUCCESS;
}

int cwist_jq__letter_add(cwist_job_dead_page_t *page, const cwist_jq__queue *queue,
                         natsMsg *message, const cwist_jq__fields *fields,
                         const cwist_jq__found *found)
{
    const char *name = name_of(queue, natsMsg_GetSubject(message));
    cwist_job_header_t *headers = NULL;
    cwist_jq__letter letter;
    texts t;

    memset(&letter, 0, sizeof letter);
    memset(&t, 0, sizeof t);
    (void)cwist_jq__put_number(t.place, found->sequence);
    letter.told.id = t.place; /* of what is no letter of ours */
    if (name != NULL) {
        read_name(&letter, t.id, name);
    }
    read_headers(&letter, message);
    int status = read_texts(&t, message);
    if (status == CWIST_SUCCESS) {
        status = add_headers(&letter, &headers, fields);
    }
    if (status == CWIST_SUCCESS) {
        letter.told.type = t.type;
        letter.told.reason = t.reason;
        letter.told.died_ms = found->died_ms;
        letter.told.len = found->len;
        letter.told.payload = found->payload;
        letter.place = t.place;
        letter.place_len = strlen(t.place) + 1;
        letter.mark = t.place;
        status = cwist_jq__page_add(page, &letter);
    }
    cwist_jq__free(headers);
    cwist_jq__free(t.type);
    cwist_jq__free(t.reason);
    return status;
}
