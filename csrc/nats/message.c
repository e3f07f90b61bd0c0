/* What a delivered message says: its ack subject, its headers, and what of them a move keeps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nats/jetstream.h"

#define NS_PER_MS UINT64_C(1000000)

bool cwist_jq__decimal(uint64_t *number, const char *text)
{
    uint64_t value = 0;

    if (text == NULL || *text == '\0' || (text[0] == '0' && text[1] != '\0')) {
        return false;
    }
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)(*text - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

size_t cwist_jq__put_number(char *out, uint64_t number)
{
    char digits[CWIST_JQ_DIGITS];
    size_t len = 0;

    do {
        digits[len++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    for (size_t i = 0; i < len; i++) {
        out[i] = digits[len - 1 - i];
    }
    out[len] = '\0';
    return len;
}

/* Reads the number that is one token; *at moves behind it and the dot. */
static bool token_number(uint64_t *number, const char **at)
{
    const char *text = *at;
    uint64_t value = 0;
    unsigned digit = 0;

    for (; (digit = (unsigned)*text - '0') <= 9; text++) {
        if (value > (UINT64_MAX - digit) / 10 || (value == 0 && text > *at)) {
            return false;
        }
        value = value * 10 + digit;
    }
    bool whole = text > *at && (*text == '.' || *text == '\0');
    *number = value;
    *at = *text == '.' ? text + 1 : text;
    return whole;
}

static bool skip_token(const char **at)
{
    const char *dot = strchr(*at, '.');

    *at = dot != NULL ? dot + 1 : *at;
    return dot != NULL;
}

/*
 * $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>, or, with
 * 11 or 12 tokens, <domain>.<account> before the stream and a token more at the end.
 */
bool cwist_jq__ticket_read(cwist_jq__ticket *ticket, const char *ack_subject)
{
    size_t dots = 0;

    if (ack_subject == NULL || strncmp(ack_subject, "$JS.ACK.", 8) != 0) {
        return false;
    }
    for (const char *at = ack_subject; *at != '\0'; at++) {
        dots += *at == '.' ? 1 : 0;
    }
    const char *at = ack_subject + 8;
    bool good = dots == 8 || (dots >= 10 && skip_token(&at) && skip_token(&at));
    return good && skip_token(&at) && skip_token(&at) && token_number(&ticket->delivered, &at) &&
           token_number(&ticket->sequence, &at) && skip_token(&at) &&
           token_number(&ticket->stored, &at);
}

uint64_t cwist_jq__pending_after(const char *ack_subject)
{
    const char *at = ack_subject;
    uint64_t pending = 0;
    size_t dots = 0;

    for (const char *c = at; *c != '\0'; c++) {
        dots += *c == '.' ? 1 : 0;
    }
    for (size_t skipped = dots == 8 ? 8 : 10; skipped > 0; skipped--) {
        if (!skip_token(&at)) {
            return 0;
        }
    }
    return token_number(&pending, &at) ? pending : 0;
}

const char *cwist_jq__header_of(natsMsg *message, const char *name)
{
    const char *value = NULL;

    return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : NULL;
}

/* A header of ours that must be a number, if it is there. */
static void read_number(cwist_jq__origin *origin, uint64_t *out, natsMsg *message, const char *name,
                        uint64_t most, const char *rule)
{
    const char *value = cwist_jq__header_of(message, name);
    uint64_t number = 0;

    if (value == NULL) {
        return;
    }
    if (cwist_jq__decimal(&number, value) && number <= most) {
        *out = number;
    } else {
        origin->malformed = rule;
    }
}

static void read_type(cwist_jq__origin *origin, natsMsg *message)
{
    const char *quoted = cwist_jq__header_of(message, "Cwist-Type-Quoted");
    size_t len = quoted != NULL ? strlen(quoted) : 0;

    if (quoted != NULL && len >= 2 && quoted[0] == '"' && quoted[len - 1] == '"') {
        origin->type = quoted + 1;
        origin->type_len = len - 2;
    } else if (quoted != NULL) {
        origin->malformed = "Cwist-Type-Quoted is not in quotes";
    } else {
        origin->type = cwist_jq__header_of(message, "Cwist-Type");
        origin->type_len = origin->type != NULL ? strlen(origin->type) : 0;
    }
    if (origin->type != NULL &&
        cwist_jq__check_type(origin->type, origin->type_len) != CWIST_SUCCESS) {
        origin->malformed = "the type is no UTF-8 text of 255 bytes without control characters";
        origin->type = NULL;
        origin->type_len = 0;
    }
}

void cwist_jq__origin_read(cwist_jq__origin *origin, natsMsg *message)
{
    uint64_t id = 0;

    memset(origin, 0, sizeof *origin);
    if (!cwist_jq__ticket_read(&origin->ticket, natsMsg_GetReply(message))) {
        origin->malformed = "the ack subject cannot be read";
        return;
    }
    (void)cwist_jq__put_number(origin->sequence, origin->ticket.sequence);
    origin->first = origin->ticket.stored / NS_PER_MS;
    read_type(origin, message);
    read_number(origin, &id, message, "Cwist-Id", UINT64_MAX, "Cwist-Id is no number");
    read_number(origin, &origin->spent, message, "Cwist-Attempts", CWIST_JQ_MAX_ATTEMPTS,
                "Cwist-Attempts is not 0 to 1000000");
    read_number(origin, &origin->first, message, "Cwist-First", UINT64_MAX,
                "Cwist-First is no number");
    read_number(origin, &origin->from, message, "Cwist-From", UINT64_MAX,
                "Cwist-From is no number");
    read_number(origin, &origin->dead, message, "Cwist-Dead", UINT64_MAX,
                "Cwist-Dead is no number");
    if (origin->from >= origin->ticket.sequence) {
        origin->from = 0; /* the stream was made anew: the original went with the old one */
    }
    if (origin->malformed != NULL) { /* then none of them is to be trusted */
        origin->first = origin->ticket.stored / NS_PER_MS;
        origin->from = 0;
        origin->spent = 0;
        origin->dead = 0;
    }
    bool named = origin->malformed == NULL && id != 0;
    origin->id = named ? cwist_jq__header_of(message, "Cwist-Id") : origin->sequence;
}

static bool grow(cwist_jq__headers *headers)
{
    if (headers->cap == 0) {
        headers->list = headers->few;
        headers->cap = sizeof headers->few / sizeof *headers->few;
        return true;
    }
    bool few = headers->list == headers->few;
    size_t cap = few ? 16 : headers->cap * 2;
    cwist_jq__header *list = cap <= SIZE_MAX / sizeof *list
                                 ? cwist_jq__realloc(few ? NULL : headers->list, cap * sizeof *list)
                                 : NULL;
    if (list == NULL) {
        return false;
    }
    if (few) {
        memcpy(list, headers->few, sizeof headers->few);
    }
    headers->list = list;
    headers->cap = cap;
    return true;
}

void cwist_jq__headers_add(cwist_jq__headers *headers, const char *name, const char *value)
{
    if (headers->failed) {
        return;
    }
    if (headers->count == headers->cap && !grow(headers)) {
        headers->failed = true;
        return;
    }
    headers->list[headers->count++] = (cwist_jq__header){name, value, NULL};
}

void cwist_jq__headers_own(cwist_jq__headers *headers, const char *name, char *value)
{
    if (value == NULL) {
        headers->failed = true;
        return;
    }
    cwist_jq__headers_add(headers, name, value);
    if (headers->failed) {
        cwist_jq__free(value);
    } else {
        headers->list[headers->count - 1].owned = value;
    }
}

/* Headers that every move writes anew. */
static bool is_rewritten(const char *name)
{
    static const char *const names[] = {"Cwist-Id",      "Cwist-Attempts", "Cwist-First",
                                        "Cwist-From",    "Cwist-Cause",    "Cwist-Reason",
                                        "Cwist-Consumer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The name under which a malformed message's own header is kept beside the rewritten one. */
static const char *raw_name(const char *name)
{
    return strcmp(name, "Cwist-Id") == 0         ? "Cwist-Raw-Id"
           : strcmp(name, "Cwist-Attempts") == 0 ? "Cwist-Raw-Attempts"
           : strcmp(name, "Cwist-First") == 0    ? "Cwist-Raw-First"
           : strcmp(name, "Cwist-From") == 0     ? "Cwist-Raw-From"
           : strcmp(name, "Cwist-Dead") == 0     ? "Cwist-Raw-Dead"
                                                 : NULL;
}

static void keep_header(cwist_jq__headers *headers, natsMsg *message, const char *name, bool raw)
{
    const char **values = NULL;
    const char *kept = name;
    int count = 0;

    if (strncmp(name, "Nats-", 5) == 0) {
        return;
    }
    if (is_rewritten(name)) {
        kept = raw ? raw_name(name) : NULL;
    }
    if (kept == NULL || natsMsgHeader_Values(message, name, &values, &count) != NATS_OK) {
        return;
    }
    for (int i = 0; i < count; i++) {
        cwist_jq__headers_add(headers, kept, values[i]);
    }
    free((void *)values); /* the list, not the strings; libnats made it with malloc */
}

void cwist_jq__headers_keep(cwist_jq__headers *headers, natsMsg *message, bool raw)
{
    const char **names = NULL;
    int count = 0;

    if (natsMsgHeader_Keys(message, &names, &count) != NATS_OK) {
        return; /* it has none */
    }
    for (int i = 0; i < count; i++) {
        keep_header(headers, message, names[i], raw);
    }
    free((void *)names);
}

void cwist_jq__headers_drop(cwist_jq__headers *headers, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < headers->count; i++) {
        if (strcmp(headers->list[i].name, name) == 0) {
            cwist_jq__free(headers->list[i].owned);
        } else {
            headers->list[kept++] = headers->list[i];
        }
    }
    headers->count = kept;
}

void cwist_jq__headers_type(cwist_jq__headers *headers, const char *type)
{
    size_t len = type != NULL ? strlen(type) : 0;

    if (len == 0) {
        return;
    }
    if (type[0] == ' ' || type[len - 1] == ' ') { /* a plain value would lose its outer spaces */
        cwist_jq__headers_own(headers, "Cwist-Type-Quoted", cwist_jq__format("\"%s\"", type));
    } else {
        cwist_jq__headers_add(headers, "Cwist-Type", type);
    }
}

size_t cwist_jq__headers_size(const cwist_jq__headers *headers)
{
    size_t size = headers->count > 0 ? sizeof "NATS/1.0\r\n\r\n" - 1 : 0;

    for (size_t i = 0; i < headers->count; i++) {
        size += strlen(headers->list[i].name) + strlen(headers->list[i].value) + 4;
    }
    return size;
}

void cwist_jq__headers_clear(cwist_jq__headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        cwist_jq__free(headers->list[i].owned);
    }
    if (headers->list != headers->few) {
        cwist_jq__free(headers->list);
    }
    memset(headers, 0, sizeof *headers);
}
