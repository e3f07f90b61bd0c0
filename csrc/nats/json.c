#include "nats/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cwist_jq__json nothing = {NULL, 0};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at)) {
        at++;
    }
    return at;
}

/* `at` is on the opening quote; the place after the closing one, or NULL. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '\\') {
            at++;
        } else if (*at == '"') {
            return at + 1;
        }
    }
    return NULL;
}

/* The place after the value that begins at `at`, or NULL. Brackets are counted, not matched. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at != NULL && at < end) {
        char c = *at;
        if (c == '"') {
            at = skip_string(at, end);
            if (depth == 0) {
                return at;
            }
            continue;
        }
        if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) {
                return at;
            }
            if (--depth == 0) {
                return at + 1;
            }
        } else if (depth == 0 && (c == ',' || is_space(c))) {
            return at;
        }
        at++;
    }
    return depth == 0 ? at : NULL;
}

/*
 * One step through the members of an object. *at begins as object.text; false at the end. A text
 * that is no JSON ends the walk.
 */
static bool next_member(cwist_jq__json object, const char **at, cwist_jq__json *name,
                        cwist_jq__json *value)
{
    const char *end = object.text + object.len;
    const char *here = skip_space(*at, end);

    if (here >= end || (*here != '{' && *here != ',')) {
        return false;
    }
    here = skip_space(here + 1, end);
    if (here >= end || *here != '"') {
        return false;
    }
    const char *after = skip_string(here, end);
    if (after == NULL) {
        return false;
    }
    *name = (cwist_jq__json){here, (size_t)(after - here)};
    here = skip_space(after, end);
    if (here >= end || *here != ':') {
        return false;
    }
    here = skip_space(here + 1, end);
    after = skip_value(here, end);
    if (after == NULL || after == here) {
        return false;
    }
    *value = (cwist_jq__json){here, (size_t)(after - here)};
    *at = after;
    return true;
}

/* Names of the API hold no escapes, so the raw characters decide. */
static bool name_is(cwist_jq__json name, const char *wanted)
{
    size_t len = strlen(wanted);
    return name.len == len + 2 && memcmp(name.text + 1, wanted, len) == 0;
}

cwist_jq__json cwist_jq__json_member(cwist_jq__json object, const char *name)
{
    const char *at = object.text;
    cwist_jq__json key;
    cwist_jq__json value;

    while (at != NULL && next_member(object, &at, &key, &value)) {
        if (name_is(key, name)) {
            return value;
        }
    }
    return nothing;
}

bool cwist_jq__json_each(cwist_jq__json array, cwist_jq__json *item)
{
    if (array.text == NULL || array.len == 0 || *array.text != '[') {
        return false;
    }
    const char *end = array.text + array.len;
    const char *at = array.text + 1;
    if (item->text != NULL) {
        at = skip_space(item->text + item->len, end);
        if (at >= end || *at != ',') {
            return false;
        }
        at++;
    }
    at = skip_space(at, end);
    const char *after = skip_value(at, end);
    if (after == NULL || after == at) {
        return false;
    }
    *item = (cwist_jq__json){at, (size_t)(after - at)};
    return true;
}

int64_t cwist_jq__json_int(cwist_jq__json value, int64_t otherwise)
{
    size_t at = 0;
    bool negative = value.len > 0 && value.text[0] == '-';
    int64_t number = 0;

    at = negative ? 1 : 0;
    if (at >= value.len) {
        return otherwise;
    }
    for (; at < value.len; at++) {
        int digit = value.text[at] - '0';
        if (digit < 0 || digit > 9 || number > (INT64_MAX - digit) / 10) {
            return otherwise;
        }
        number = number * 10 + digit;
    }
    return negative ? -number : number;
}

uint64_t cwist_jq__json_count(cwist_jq__json object, const char *name)
{
    int64_t number = cwist_jq__json_int(cwist_jq__json_member(object, name), 0);

    return number > 0 ? (uint64_t)number : 0;
}

bool cwist_jq__json_true(cwist_jq__json value)
{
    return value.len == 4 && memcmp(value.text, "true", 4) == 0;
}

/* The code of \uXXXX at `at`, or '?' for what is not ASCII: these texts are only shown. */
static char short_escape(const char *at, const char *end)
{
    unsigned code = 0;

    for (int i = 0; i < 4; i++) {
        char c = at + i < end ? at[i] : 'x';
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 0x10000u;
        code = code * 16 + digit;
    }
    return code >= 0x20 && code < 0x7F ? (char)code : '?';
}

/* The next character of a string, its escape undone; *at moves on. */
static char next_char(const char **at, const char *end)
{
    char c = *(*at)++;

    if (c != '\\' || *at >= end) {
        return c;
    }
    c = *(*at)++;
    if (c == 'u') {
        c = short_escape(*at, end);
        *at = end - *at >= 4 ? *at + 4 : end;
    } else if (c == 'n' || c == 't' || c == 'r' || c == 'b' || c == 'f') {
        c = ' ';
    }
    return c;
}

bool cwist_jq__json_is(cwist_jq__json value, const char *string)
{
    if (value.len < 2 || value.text[0] != '"') {
        return false;
    }
    const char *at = value.text + 1;
    const char *end = value.text + value.len - 1;
    while (at < end && *string != '\0' && next_char(&at, end) == *string) {
        string++; /* the server writes > as an escape, so characters are compared, not bytes */
    }
    return at == end && *string == '\0';
}

void cwist_jq__json_copy(cwist_jq__json value, char *out, size_t size)
{
    const char *at = value.text;
    const char *end = at == NULL ? NULL : at + value.len;
    size_t used = 0;

    if (at != NULL && value.len >= 2 && *at == '"') {
        at++;
        end--;
    }
    while (at != NULL && at < end && used + 1 < size) {
        out[used++] = next_char(&at, end);
    }
    out[used] = '\0';
}

static bool make_room(cwist_jq__text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 2 - text->len) {
        text->failed = true;
        return false;
    }
    size_t need = text->len + more + 1;
    if (need > text->cap) {
        size_t cap = need + need / 2 + 64;
        char *data = cwist_jq__realloc(text->data, cap);
        if (data == NULL) {
            text->failed = true;
            return false;
        }
        text->data = data;
        text->cap = cap;
    }
    return true;
}

void cwist_jq__text_add(cwist_jq__text *text, const char *data, size_t len)
{
    if (make_room(text, len)) {
        if (len > 0) {
            memcpy(text->data + text->len, data, len);
        }
        text->len += len;
        text->data[text->len] = '\0';
    }
}

void cwist_jq__text_format(cwist_jq__text *text, const char *format, ...)
{
    va_list args;
    va_list again;

    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        text->failed = true;
    } else if (make_room(text, (size_t)len)) {
        (void)vsnprintf(text->data + text->len, (size_t)len + 1, format, again);
        text->len += (size_t)len;
    }
    va_end(again);
}

void cwist_jq__text_object_with(cwist_jq__text *text, cwist_jq__json object, const char *name,
                                const char *value)
{
    const char *at = object.text;
    cwist_jq__json key;
    cwist_jq__json old;

    cwist_jq__text_format(text, "{\"%s\":%s", name, value);
    while (at != NULL && next_member(object, &at, &key, &old)) {
        if (!name_is(key, name)) {
            cwist_jq__text_add(text, ",", 1);
            cwist_jq__text_add(text, key.text, key.len);
            cwist_jq__text_add(text, ":", 1);
            cwist_jq__text_add(text, old.text, old.len);
        }
    }
    cwist_jq__text_add(text, "}", 1);
}

void cwist_jq__text_clear(cwist_jq__text *text)
{
    cwist_jq__free(text->data);
    memset(text, 0, sizeof *text);
}
