/*
 * An element of the list of dead letters as it is told. Ours is a record of packed strings
 * (docs/wire-format.md); older clients leave another shape; of anything else only the bytes are
 * told, as the payload of a malformed job.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/redis.h"

#define MARK '\xC1'

/* Where the strings of a record stand. */
enum { ID, TYPE, ATTEMPTS, CAUSE, REASON, FIRST, LAST, CONSUMER, KNOWN };

/* A copy of an element, whose strings can be ended with NUL where they stand. */
typedef struct {
    char *text;
    size_t len;
    size_t at;
} strings;

static size_t read_length(const char *at)
{
    const unsigned char *bytes = (const unsigned char *)at;

    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

/* The next string, not yet ended; NULL when there is none. */
static char *next_string(strings *from, size_t *len)
{
    if (from->len - from->at < 4) {
        return NULL;
    }
    *len = read_length(from->text + from->at);
    if (*len > from->len - from->at - 4) {
        return NULL;
    }
    char *text = from->text + from->at + 4;
    from->at += 4 + *len;
    return text;
}

/* Plain text without a NUL inside; else NULL. */
static const char *plain(const char *text, size_t len, size_t most)
{
    return len != 0 && cwist_jq__check_text("text", text, len, most, true) == CWIST_SUCCESS ? text
                                                                                            : NULL;
}

static uint64_t read_number(const char *text)
{
    return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

static const char *known_cause(const char *text)
{
    static const cwist_jq__cause causes[] = {CWIST_JQ_CAUSE_NACKED, CWIST_JQ_CAUSE_LEASE_EXPIRED,
                                             CWIST_JQ_CAUSE_MALFORMED, CWIST_JQ_CAUSE_REJECTED};

    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (strcmp(text, cwist_jq__cause_name(causes[i])) == 0) {
            return cwist_jq__cause_name(causes[i]);
        }
    }
    return cwist_jq__cause_name(CWIST_JQ_CAUSE_MALFORMED);
}

/* The caller's text may hold any character but NUL. */
static const char *read_reason(const char *text, size_t len)
{
    return len != 0 && memchr(text, '\0', len) == NULL &&
                   cwist_jq__check_text("reason", text, len, CWIST_JQ_REASON_MAX, false) ==
                       CWIST_SUCCESS
               ? text
               : NULL;
}

/* The first strings of a record, each ended by a NUL. False: it is not whole. */
static bool read_known(strings *from, const char *known[KNOWN], size_t lens[KNOWN])
{
    char *ends[KNOWN];

    for (size_t i = 0; i < KNOWN; i++) {
        char *text = next_string(from, &lens[i]);
        if (text == NULL) {
            return false;
        }
        known[i] = text;
        ends[i] = text + lens[i];
        if (i != 0) {
            *ends[i - 1] = '\0'; /* over a length that was read */
        }
    }
    return true;
}

/* The headers among the other fields; ends each of their strings. */
static size_t read_headers(strings *from, cwist_job_header_t headers[CWIST_JOB_HEADERS_MAX])
{
    char *end = from->text + from->at; /* of the string before */
    size_t count = 0;
    size_t name_len = 0;
    size_t value_len = 0;

    for (;;) {
        char *name = next_string(from, &name_len);
        char *value = name != NULL ? next_string(from, &value_len) : NULL;
        *end = '\0';
        if (value == NULL) {
            return count;
        }
        name[name_len] = '\0';
        end = value + value_len;
        cwist_jq__field header;
        if (count < CWIST_JOB_HEADERS_MAX &&
            cwist_jq__redis_read_header(name, name_len, value, value_len, &header)) {
            headers[count].name = header.name;
            headers[count++].value = header.value;
        }
    }
}

static bool read_own(cwist_job_dead_letter_t *told, strings *from,
                     cwist_job_header_t headers[CWIST_JOB_HEADERS_MAX])
{
    const char *known[KNOWN];
    size_t lens[KNOWN];

    if (!read_known(from, known, lens)) {
        return false;
    }
    told->header_count = read_headers(from, headers);
    told->headers = headers;
    uint64_t attempts = read_number(known[ATTEMPTS]);
    told->id = known[ID];
    told->type = plain(known[TYPE], lens[TYPE], CWIST_JQ_TYPE_MAX);
    told->cause = known_cause(known[CAUSE]);
    told->reason = read_reason(known[REASON], lens[REASON]);
    told->consumer = plain(known[CONSUMER], lens[CONSUMER], CWIST_JQ_TYPE_MAX);
    told->attempts = attempts > UINT32_MAX ? UINT32_MAX : (uint32_t)attempts;
    told->first_ms = read_number(known[FIRST]);
    told->died_ms = read_number(known[LAST]);
    return true;
}

/* An element of an older client: type length and attempts, type, payload. */
static void read_older(cwist_job_dead_letter_t *told, strings *from, const char *bytes)
{
    size_t type_len = from->len >= 8 ? read_length(from->text) : SIZE_MAX;

    told->cause = cwist_jq__cause_name(CWIST_JQ_CAUSE_MALFORMED);
    told->payload = bytes;
    told->len = from->len;
    if (from->len < 8 || type_len > from->len - 8) {
        return;
    }
    told->cause = cwist_jq__cause_name(CWIST_JQ_CAUSE_NACKED);
    told->attempts = (uint32_t)read_length(from->text + 4);
    told->payload = bytes + 8 + type_len;
    told->len = from->len - 8 - type_len;
    from->text[8 + type_len] = '\0'; /* it is a copy, with room for this */
    told->type = plain(from->text + 8, type_len, CWIST_JQ_TYPE_MAX);
}

/* How the letter is found again: the end to look from, then the element itself. */
static char *make_place(const cwist_jq__redis_dead *dead)
{
    char *place = cwist_jq__alloc(dead->element->len + 2);

    if (place != NULL) {
        place[0] = dead->side->integer < 0 ? '-' : '+';
        memcpy(place + 1, dead->element->str, dead->element->len + 1);
    }
    return place;
}

static bool well_formed(const cwist_jq__redis_dead *dead)
{
    return cwist_jq__redis_is_text(dead->element) && cwist_jq__redis_is_text(dead->mark) &&
           cwist_jq__redis_is_number(dead->side) &&
           (cwist_jq__redis_is_number(dead->size) ||
            (cwist_jq__redis_is_text(dead->size) && dead->size->len == CWIST_JQ_REDIS_DIGEST_LEN));
}

/* Fills in what is told; `copy` is the element once more. */
static bool read_letter(cwist_job_dead_letter_t *told, strings *copy,
                        const cwist_jq__redis_dead *dead, char id[CWIST_JOB_ID_SIZE],
                        cwist_job_header_t headers[CWIST_JOB_HEADERS_MAX])
{
    if (cwist_jq__redis_is_number(dead->size)) {
        copy->at = 1;
        if (copy->len == 0 || copy->text[0] != MARK || !read_own(told, copy, headers)) {
            return false;
        }
        told->len = dead->size->integer > 0 ? (size_t)dead->size->integer : 0;
        if (dead->payload != NULL) {
            bool kept = cwist_jq__redis_is_text(dead->payload);
            told->payload = kept ? dead->payload->str : "";
            told->len = kept ? dead->payload->len : 0;
        }
        return true;
    }
    memcpy(id, CWIST_JQ_REDIS_OLDER_ID, sizeof CWIST_JQ_REDIS_OLDER_ID);
    memcpy(id + sizeof CWIST_JQ_REDIS_OLDER_ID - 1, dead->size->str, CWIST_JQ_REDIS_DIGEST_LEN + 1);
    told->id = id;
    read_older(told, copy, dead->element->str);
    if (dead->payload == NULL) {
        told->payload = NULL;
    }
    return true;
}

int cwist_jq__redis_letter_add(cwist_job_dead_page_t *page, const cwist_jq__redis_dead *dead)
{
    cwist_job_header_t headers[CWIST_JOB_HEADERS_MAX];
    char id[CWIST_JOB_ID_SIZE];
    cwist_jq__letter letter = {0};

    if (!well_formed(dead)) {
        return cwist_jq__redis_odd_reply("EVALSHA (letters)");
    }
    strings copy = {cwist_jq__strndup(dead->element->str, dead->element->len), dead->element->len,
                    0};
    char *place = make_place(dead);
    int status = copy.text != NULL && place != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
    if (status == CWIST_SUCCESS && !read_letter(&letter.told, &copy, dead, id, headers)) {
        status = cwist_jq__redis_odd_reply("EVALSHA (letters)");
    }
    if (status == CWIST_SUCCESS) {
        letter.place = place;
        letter.place_len = dead->element->len + 1;
        letter.mark = dead->mark->str;
        status = cwist_jq__page_add(page, &letter);
    }
    cwist_jq__free(copy.text);
    cwist_jq__free(place);
    return status;
}
