/*
 * A stream entry becomes a delivery. Anybody may write to the stream, so nothing is taken for
 * granted: a wrong reply is a protocol error, a wrong entry is a malformed job.
 */
#include <string.h>

#include "redis/redis.h"

/* Fields beside ours; what a script can carry over (lua/includes/fields.lua). */
#define OTHERS_MAX 3000

static bool all_digits(const char *text, size_t len, size_t most)
{
    if (len == 0 || len > most) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
    }
    return true;
}

/* "<time>-<sequence>", as the server makes them. */
static bool is_entry_id(const char *text, size_t len)
{
    const char *dash = memchr(text, '-', len);

    if (dash == NULL) {
        return false;
    }
    size_t head = (size_t)(dash - text);
    return all_digits(text, head, 20) && all_digits(dash + 1, len - head - 1, 20);
}

static bool read_count(const char *text, size_t len, uint32_t *count)
{
    if (!all_digits(text, len, 7)) {
        return false;
    }
    *count = 0;
    for (size_t i = 0; i < len; i++) {
        *count = *count * 10 + (uint32_t)(text[i] - '0');
    }
    return *count <= CWIST_JQ_MAX_ATTEMPTS;
}

static bool is_label(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= 0x20 || text[i] >= 0x7F) {
            return false;
        }
    }
    return len >= 1 && len <= 128;
}

static bool named(const redisReply *name, const char *text)
{
    size_t len = strlen(text);
    return name->len == len && memcmp(name->str, text, len) == 0;
}

/* The fields that mean something to us, the first of each name. */
typedef struct {
    const redisReply *type;
    const redisReply *payload;
    const redisReply *id;
    const redisReply *attempts;
    const redisReply *consumer;
    const redisReply *key;
    size_t others; /* how many fields are not ours */
} known_fields;

static bool header_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool cwist_jq__redis_read_header(const char *name, size_t name_len, const char *value,
                                 size_t value_len, cwist_jq__field *header)
{
    size_t prefix = sizeof CWIST_JQ_REDIS_HEADER - 1;

    if (name_len <= prefix || name_len - prefix > CWIST_JQ_HEADER_NAME_MAX ||
        memcmp(name, CWIST_JQ_REDIS_HEADER, prefix) != 0) {
        return false;
    }
    for (size_t i = prefix; i < name_len; i++) {
        if (!header_char(name[i])) {
            return false;
        }
    }
    header->name = name + prefix;
    header->name_len = name_len - prefix;
    header->value = value;
    header->value_len = value_len;
    return cwist_jq__check_text("header", value, value_len, CWIST_JQ_HEADER_VALUE_MAX, true) ==
           CWIST_SUCCESS;
}

/* Adds a header to those of a delivery: when a name comes twice, the first counts. */
static void add_header(cwist_jq__delivery *delivery, cwist_jq__field *headers,
                       const redisReply *name, const redisReply *value)
{
    cwist_jq__field *header = &headers[delivery->header_count];

    if (delivery->header_count == CWIST_JOB_HEADERS_MAX ||
        !cwist_jq__redis_read_header(name->str, name->len, value->str, value->len, header)) {
        return;
    }
    for (size_t i = 0; i < delivery->header_count; i++) {
        if (headers[i].name_len == header->name_len &&
            memcmp(headers[i].name, header->name, header->name_len) == 0) {
            return;
        }
    }
    delivery->headers = headers;
    delivery->header_count++;
}

static bool find_fields(known_fields *found, const redisReply *fields, cwist_jq__delivery *delivery,
                        cwist_jq__field *headers)
{
    memset(found, 0, sizeof *found);
    if (fields->elements % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < fields->elements; i += 2) {
        const redisReply *name = fields->element[i];
        const redisReply *value = fields->element[i + 1];
        if (!cwist_jq__redis_is_text(name) || !cwist_jq__redis_is_text(value)) {
            return false;
        }
        const redisReply **slot = named(name, "type")                     ? &found->type
                                  : named(name, "payload")                ? &found->payload
                                  : named(name, "cwist-id")               ? &found->id
                                  : named(name, "cwist-attempts")         ? &found->attempts
                                  : named(name, "cwist-consumer")         ? &found->consumer
                                  : named(name, CWIST_JQ_REDIS_KEY_FIELD) ? &found->key
                                                                          : NULL;
        if (slot != NULL && *slot == NULL) {
            *slot = value;
        }
        if (slot == NULL && name->len > 2 && name->str[0] == 'h') {
            add_header(delivery, headers, name, value);
        }
        found->others += slot == NULL || slot == &found->type || slot == &found->payload;
    }
    return true;
}

/* Fills what is sound and names the first rule that is broken. */
static void judge_fields(cwist_jq__delivery *delivery, const known_fields *found)
{
    const char *broken = NULL;
    uint32_t spent = 0;

    if (found->consumer != NULL && !is_label(found->consumer->str, found->consumer->len)) {
        broken = "field cwist-consumer is not 1 to 128 printable ASCII characters";
    }
    if (found->attempts != NULL &&
        !read_count(found->attempts->str, found->attempts->len, &spent)) {
        broken = "field cwist-attempts is not a number up to 1000000";
        spent = 0;
    }
    if (found->id != NULL && is_entry_id(found->id->str, found->id->len)) {
        delivery->id = found->id->str;
        delivery->id_len = found->id->len;
    } else if (found->id != NULL) {
        broken = "field cwist-id is not an entry id";
    }
    if (found->key != NULL && found->key->len != 0 &&
        cwist_jq__check_text("key", found->key->str, found->key->len, CWIST_JQ_KEY_MAX, true) ==
            CWIST_SUCCESS) {
        delivery->key = found->key->str;
        delivery->key_len = found->key->len;
    } else if (found->key != NULL) {
        broken = "field cwist-key is not 1 to 255 bytes of UTF-8 without control characters";
    }
    if (found->type != NULL &&
        cwist_jq__check_type(found->type->str, found->type->len) == CWIST_SUCCESS) {
        delivery->type = found->type->str;
        delivery->type_len = found->type->len;
    } else if (found->type != NULL) {
        broken = "field type is not up to 255 bytes of UTF-8 without control characters";
    }
    if (found->payload != NULL) {
        delivery->payload = found->payload->str;
        delivery->payload_len = found->payload->len;
    } else {
        broken = "field payload is missing";
    }
    if (found->others > OTHERS_MAX) {
        broken = "the entry has more than 3000 fields";
    }
    delivery->attempts = spent + 1;
    delivery->malformed = broken;
}

int cwist_jq__redis_parse_entry(const redisReply *entry, cwist_jq__delivery *delivery,
                                cwist_jq__field headers[CWIST_JOB_HEADERS_MAX],
                                const redisReply **payload)
{
    memset(delivery, 0, sizeof *delivery);
    *payload = NULL;
    if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 ||
        !cwist_jq__redis_is_text(entry->element[0]) ||
        !is_entry_id(entry->element[0]->str, entry->element[0]->len)) {
        return cwist_jq__redis_odd_reply("XREADGROUP");
    }
    delivery->receipt = entry->element[0]->str;
    delivery->receipt_len = entry->element[0]->len;
    delivery->id = delivery->receipt;
    delivery->id_len = delivery->receipt_len;

    const redisReply *fields = entry->element[1];
    if (fields->type == REDIS_REPLY_NIL) {
        return CWIST_JQ_PENDING;
    }
    known_fields found;
    if (fields->type != REDIS_REPLY_ARRAY || !find_fields(&found, fields, delivery, headers)) {
        return cwist_jq__redis_odd_reply("XREADGROUP");
    }
    judge_fields(delivery, &found);
    *payload = found.payload;
    return CWIST_SUCCESS;
}

static bool is_none(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_NIL ||
           (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0);
}

int cwist_jq__redis_parse_read(const redisReply *reply, size_t most, const redisReply **entries)
{
    *entries = NULL;
    if (is_none(reply)) {
        return CWIST_SUCCESS;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1) {
        return cwist_jq__redis_odd_reply("XREADGROUP");
    }
    const redisReply *stream = reply->element[0];
    if (stream->type != REDIS_REPLY_ARRAY || stream->elements != 2) {
        return cwist_jq__redis_odd_reply("XREADGROUP");
    }
    const redisReply *found = stream->element[1];
    if (is_none(found)) {
        return CWIST_SUCCESS;
    }
    if (found->type != REDIS_REPLY_ARRAY || found->elements > most) {
        return cwist_jq__redis_odd_reply("XREADGROUP");
    }
    *entries = found;
    return CWIST_SUCCESS;
}
