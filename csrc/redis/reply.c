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
    {"The user executing the script can't", CWIST_JQ_FAULT_DENIED}, /* 6.2, inside a script */
    {"NOGROUP ", CWIST_JQ_FAULT_NO_GROUP},
    {"NOSCRIPT ", CWIST_JQ_FAULT_NO_SCRIPT},
    {"MOVED ", CWIST_JQ_FAULT_MOVED},
};

/*
 * Redis 6.2 writes "ERR Error running script (call to f_<sha>): @user_script:8: @user_script: 8:
 * -OOM command not allowed": the cause stands behind the last place in the script.
 */
static const char *inner_text(const char *text)
{
    const char *inner = text;

    if (!starts(text, "ERR Error running script")) {
        return text;
    }
    for (const char *at = strstr(text, "@user_script:"); at != NULL;
         at = strstr(at, "@user_script:")) {
        at += strlen("@user_script:");
        inner = at + strspn(at, " 0123456789:-");
    }
    return inner;
}

cwist_jq__redis_fault cwist_jq__redis_fault_of(const redisReply *reply)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return CWIST_JQ_FAULT_NONE;
    }
    const char *text = inner_text(reply->str);
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
    return cwist_jq__fail(code, "%s: %s", command, reply->str);
}

int cwist_jq__redis_odd_reply(const char *command)
{
    return cwist_jq__fail(CWIST_ERROR_PROTOCOL, "%s: the answer has an unexpected shape", command);
}

void cwist_jq__redis_reply_free(redisReply *reply)
{
    if (reply != NULL) {
        freeReplyObject(reply);
    }
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
