/* Every name that a queue has on a server. docs/wire-format.md is the rule. */
#include <string.h>

#include "core/internal.h"

char *cwist_jq__redis_prefix(const char *queue, bool cluster)
{
    return cluster ? cwist_jq__format("cwist:jq:{%s}:", queue)
                   : cwist_jq__format("cwist:jq:%s:", queue);
}

char *cwist_jq__nats_stream(const char *queue)
{
    size_t len = strlen(queue);
    char *name = cwist_jq__alloc(len * 3 + 1);
    char *to = name;

    if (name == NULL) {
        return NULL;
    }
    for (const char *from = queue; *from != '\0'; from++) {
        if (*from == '.' || *from == ':') {
            memcpy(to, *from == '.' ? "=2E" : "=3A", 3);
            to += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return name;
}
