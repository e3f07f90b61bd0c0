/*
 * JSON of the JetStream API, as much as the backend needs: find a member, read a number or a
 * string, and write an object back with one member changed. Nothing is copied while reading.
 */
#ifndef CWIST_JQ_NATS_JSON_H
#define CWIST_JQ_NATS_JSON_H

#include "core/internal.h"

/* A value inside a longer text. text is NULL when there is none. */
typedef struct cwist_jq__json {
    const char *text;
    size_t len;
} cwist_jq__json;

/* A text that grows. After a failed allocation it stays failed and takes nothing more. */
typedef struct cwist_jq__text {
    char *data; /* ends in NUL; NULL while empty */
    size_t len;
    size_t cap;
    bool failed;
} cwist_jq__text;

/* The member of an object; a value without text when it is missing or `object` is no object. */
cwist_jq__json cwist_jq__json_member(cwist_jq__json object, const char *name);

/* Steps through an array: start with *item zeroed; false at the end. */
bool cwist_jq__json_each(cwist_jq__json array, cwist_jq__json *item);

/* The number, or `otherwise` when the value is missing or no whole number that fits. */
int64_t cwist_jq__json_int(cwist_jq__json value, int64_t otherwise);
/* The number that is a member of an object; 0 when there is none or it is below 0. */
uint64_t cwist_jq__json_count(cwist_jq__json object, const char *name);
bool cwist_jq__json_true(cwist_jq__json value);
bool cwist_jq__json_is(cwist_jq__json value, const char *string);

/* Copies a string's characters, escapes undone, cut to fit, with a final NUL. */
void cwist_jq__json_copy(cwist_jq__json value, char *out, size_t size);

void cwist_jq__text_add(cwist_jq__text *text, const char *data, size_t len);
void cwist_jq__text_format(cwist_jq__text *text, const char *format, ...) CWIST_JQ_PRINTF(2, 3);
/* Writes object with the member set to value (raw JSON); all other members stay as they are. */
void cwist_jq__text_object_with(cwist_jq__text *text, cwist_jq__json object, const char *name,
                                const char *value);
void cwist_jq__text_clear(cwist_jq__text *text);

#endif
