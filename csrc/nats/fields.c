/* The headers of a job as its worker sees them: all but ours and the server's. */
#include <stdlib.h>
#include <string.h>

#include "nats/jetstream.h"

static bool begins_with(const char *name, const char *prefix)
{
    for (; *prefix != '\0'; name++, prefix++) {
        char lower = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        if (lower != *prefix) {
            return false;
        }
    }
    return true;
}

static bool grow(cwist_jq__fields *fields)
{
    size_t cap = fields->cap * 2;
    bool few = fields->list == fields->few;

    if (fields->list == NULL) {
        fields->list = fields->few;
        fields->cap = sizeof fields->few / sizeof *fields->few;
        return true;
    }
    cwist_jq__field *list = cap <= SIZE_MAX / sizeof *list
                                ? cwist_jq__realloc(few ? NULL : fields->list, cap * sizeof *list)
                                : NULL;
    if (list == NULL) {
        return false;
    }
    if (few) {
        memcpy(list, fields->few, sizeof fields->few);
    }
    fields->list = list;
    fields->cap = cap;
    return true;
}

static void add(cwist_jq__fields *fields, const char *name, const char *value)
{
    if (fields->count == fields->cap && !grow(fields)) {
        fields->failed = true;
        return;
    }
    fields->list[fields->count++] = (cwist_jq__field){name, strlen(name), value, strlen(value)};
}

/* True for what could be a header line: a name and a colon. */
static bool looks_like_line(const char *value)
{
    size_t name = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return name > 0 && value[name] == ':';
}

static void read_values(cwist_jq__fields *fields, natsMsg *message, const char *name)
{
    const char **values = NULL;
    int count = 0;
    bool hidden = begins_with(name, "cwist-") || begins_with(name, "nats-");

    if (natsMsgHeader_Values(message, name, &values, &count) != NATS_OK) {
        return;
    }
    for (int i = 0; i < count && !fields->failed; i++) {
        fields->suspect = fields->suspect || looks_like_line(values[i]);
        if (!hidden) {
            add(fields, name, values[i]);
        }
    }
    free((void *)values); /* the list, not the strings; libnats made it with malloc */
}

void cwist_jq__fields_read(cwist_jq__fields *fields, natsMsg *message)
{
    const char **names = NULL;
    int count = 0;

    memset(fields, 0, sizeof *fields);
    natsStatus status = natsMsgHeader_Keys(message, &names, &count);
    if (status != NATS_OK) {
        fields->suspect = status != NATS_NOT_FOUND;
        return;
    }
    for (int i = 0; i < count; i++) {
        read_values(fields, message, names[i]);
    }
    free((void *)names);
}

void cwist_jq__fields_clear(cwist_jq__fields *fields)
{
    if (fields->list != fields->few) {
        cwist_jq__free(fields->list);
    }
    memset(fields, 0, sizeof *fields);
}
