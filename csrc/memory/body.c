/* Bodies: type, key, headers and payload of a job, in one block that nobody changes. */
#include <string.h>

#include "memory/memory.h"

static size_t size_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies a string with its NUL to *at, which moves on behind it; "" for NULL. */
static const char *put(char **at, const char *text, size_t *len)
{
    size_t size = size_of(text);
    char *begin = *at;

    if (size == 0) {
        *len = 0;
        return "";
    }
    memcpy(begin, text, size);
    *at = begin + size;
    *len = size - 1;
    return begin;
}

/* What a body takes beside the struct; 0 when no number can say it. */
static size_t room_for(const cwist_job_item_t *item)
{
    size_t size = size_of(item->type) + size_of(item->dedupe_key) +
                  item->header_count * sizeof(cwist_jq__field);

    for (size_t i = 0; i < item->header_count; i++) {
        size += size_of(item->headers[i].name) + size_of(item->headers[i].value);
    }
    return item->len < SIZE_MAX / 2 ? size + item->len + sizeof(cwist_jq__memory_body) : 0;
}

cwist_jq__memory_body *cwist_jq__memory_body_new(const cwist_job_item_t *item)
{
    size_t size = room_for(item);
    cwist_jq__memory_body *body = size != 0 ? cwist_jq__alloc(size) : NULL;

    if (body == NULL) {
        return NULL;
    }
    cwist_jq__field *headers = (cwist_jq__field *)(body + 1);
    char *at = (char *)(headers + item->header_count);
    atomic_init(&body->references, 1);
    body->headers = headers;
    body->header_count = item->header_count;
    for (size_t i = 0; i < item->header_count; i++) {
        headers[i].name = put(&at, item->headers[i].name, &headers[i].name_len);
        headers[i].value = put(&at, item->headers[i].value, &headers[i].value_len);
    }
    body->type = put(&at, item->type, &body->type_len);
    body->key = item->dedupe_key != NULL ? put(&at, item->dedupe_key, &body->key_len) : NULL;
    body->payload = at;
    body->payload_len = item->len;
    if (item->len != 0) {
        memcpy(at, item->payload, item->len);
    }
    return body;
}

void cwist_jq__memory_body_ref(cwist_jq__memory_body *body)
{
    atomic_fetch_add_explicit(&body->references, 1, memory_order_relaxed);
}

void cwist_jq__memory_body_unref(void *body)
{
    cwist_jq__memory_body *own = body;

    if (atomic_fetch_sub_explicit(&own->references, 1, memory_order_acq_rel) == 1) {
        cwist_jq__free(own);
    }
}
