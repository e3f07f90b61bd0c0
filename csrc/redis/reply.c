/* What an error answer means. The first word decides; scripts wrap the words of others. */
#include <string.h>

#include "redis/redis.h"

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

typedef struct {
    const char *prefix;
    cwist_jq__redis_fault fault;
} fault_row;

static const fault_row rows[] = {
    {"LOADING ", CWIST_JQ_FAULT_AGAIN},
    {"READONLY ", CWIST_JQ_FAULT_AGAIN},
    {"UNBLOCKED ", CWIST_JQ_FAULT_AGAIN},
    {"MASTERDOWN ", CWIST_JQ_FAULT_AGAIN},
    {"CLUSTERDOWN ", CWIST_JQ_FAULT_AGAIN},
    {"TRYAGAIN ", CWIST_JQ_FAULT_AGAIN},
    {"ASK ", CWIST_JQ_FAULT_AGAIN}, /* a slot on its way to another node: wait until it is there */
    {"BUSY ", CWIST_JQ_FAULT_AGAIN},
    {"ERR max number of clients", CWIST_JQ_FAULT_AGAIN},
    {"OOM ", CWIST_JQ_FAULT_FULL},
    {"MISCONF ", CWIST_JQ_FAULT_FULL},
    {"NOREPLICAS ", CWIST_JQ_FAULT_FULL},
    {"NOAUTH ", CWIST_JQ_FAULT_DENIED},
    {"NOPERM ", CWIST_JQ_FAULT_DENIED},
    {"WRONGPASS ", CWIST_JQ_FAULT_DENIED},
    {"ERR ACL failure in script", CWIST_JQ_FAULT_DENIED},
    {"The user executing the script can't", CWIST_JQ_FAULT_DENIED}, /* inside a script */
    {"NOGROUP ", CWIST_JQ_FAULT_NO_GROUP},
    {"NOSCRIPT ", CWIST_JQ_FAULT_NO_SCRIPT},
    {"MOVED ", CWIST_JQ_FAULT_MOVED},
};

/*
 * An error inside a script comes as "... cwist <command>: <the words>" (lua/includes/call.lua),
 * around which the versions of Redis put different frames. Returns the words and the command, or
 * the whole text with *command as it is.
 */
static const char *inner_text(const char *text, const char **command, int *command_len)
{
    static const char mark[] = "cwist ";
    static const char place[] = "@user_script:";
    const char *at = starts(text, "ERR ") ? strstr(text, mark) : NULL;
    const char *colon = at != NULL ? strchr(at, ':') : NULL;

    if (colon == NULL || colon[1] != ' ') {
        return text;
    }
    *command = at + sizeof mark - 1;
    *command_len = (int)(colon - *command);
    at = colon + 2;
    if (starts(at, place)) {
        at += sizeof place - 1;
        at += strspn(at, " 0123456789:");
    }
    at += *at == '-' ? 1 : 0;
    return starts(at, "ERR The user") ? at + 4 : at;
}

cwist_jq__redis_fault cwist_jq__redis_fault_of(const redisReply *reply)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return CWIST_JQ_FAULT_NONE;
    }
    const char *command = NULL;
    int command_len = 0;
    const char *text = inner_text(reply->str, &command, &command_len);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (starts(text, rows[i].prefix)) {
            return rows[i].fault;
        }
    }
    return CWIST_JQ_FAULT_REFUSED;
}

int cwist_jq__redis_fault_fail(cwist_jq__redis_fault fault, const char *command,
                               const redisReply *reply)
{
    int code = CWIST_ERROR_REFUSED;
    const char *inner = NULL;
    int inner_len = 0;

    switch (fault) {
    case CWIST_JQ_FAULT_NONE:
        return CWIST_SUCCESS;
    case CWIST_JQ_FAULT_AGAIN:
    case CWIST_JQ_FAULT_MOVED:
        code = CWIST_JQ_AGAIN;
        break;
    case CWIST_JQ_FAULT_DENIED:
        code = CWIST_ERROR_DENIED;
        break;
    case CWIST_JQ_FAULT_FULL:
    case CWIST_JQ_FAULT_REFUSED:
    case CWIST_JQ_FAULT_NO_GROUP:
    case CWIST_JQ_FAULT_NO_SCRIPT:
        break;
    }
    const char *words = inner_text(reply->str, &inner, &inner_len);
    if (inner == NULL) {
        return cwist_jq__fail(code, "%s: %s", command, words);
    }
    /* Newer servers add the digest and the line of the script. */
    const char *tail = strstr(words, " script: ");
    int len = tail != NULL ? (int)(tail - words) : (int)strlen(words);
    return cwist_jq__fail(code, "%s: %.*s: %.*s", command, inner_len, inner, len, words);
}

void cwist_jq__redis_keep_text(char text[CWIST_JQ_REDIS_TEXT_SIZE])
{
    const char *now = cwist_jq__error_text();
    size_t len = strlen(now);

    len = len < CWIST_JQ_REDIS_TEXT_SIZE - 1 ? len : CWIST_JQ_REDIS_TEXT_SIZE - 1;
    memcpy(text, now, len);
    text[len] = '\0';
}

int cwist_jq__redis_odd_reply(const char *command)
{
    return cwist_jq__fail(CWIST_ERROR_PROTOCOL, "%s: the answer has an unexpected shape", command);
}

bool cwist_jq__redis_is_number(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_INTEGER;
}

bool cwist_jq__redis_is_text(const redisReply *reply)
{
    return reply != NULL && reply->str != NULL &&
           (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
}
