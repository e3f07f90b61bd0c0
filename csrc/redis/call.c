/* One exchange with the server, and the rules for repeating it. */
#include <string.h>

#include "redis/redis.h"

void cwist_jq__redis_call_clear(cwist_jq__redis_call *call)
{
    cwist_jq__replies_clear(&call->replies);
}

/* What the server said last, before it closed the connection: 10 ms are enough for that. */
static int read_last_words(cwist_jq__redis_call *call, cwist_jq__redis_link *link,
                           unsigned commands, int status)
{
    uint64_t until = cwist_jq__after_ms(10);
    char *cause = cwist_jq__strdup(cwist_jq__error_text());

    while (call->replies.count < commands &&
           cwist_jq__redis_link_read(link, until, call->claim) == CWIST_SUCCESS) {
        const redisReply *reply = call->replies.at[call->replies.count - 1];
        cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);
        if (fault != CWIST_JQ_FAULT_NONE) {
            /* Perhaps the answer to a command, perhaps that no client is welcome. */
            call->replies.count--;
            status = cwist_jq__redis_fault_fail(fault, "send", reply);
            cwist_jq__free(cause);
            return status;
        }
    }
    if (cause != NULL) {
        (void)cwist_jq__fail(status, "%s", cause);
    }
    cwist_jq__free(cause);
    return status;
}

static int read_replies(cwist_jq__redis_call *call, cwist_jq__redis_link *link, unsigned commands)
{
    while (call->replies.count < commands) {
        int status = cwist_jq__redis_link_read(link, call->deadline, call->claim);
        if (status == CWIST_JQ_PENDING) {
            return cwist_jq__fail(CWIST_ERROR_IO, "%s: the server did not answer in time",
                                  cwist_jq__request_name_of(&link->request, call->replies.count));
        }
        if (status != CWIST_SUCCESS) {
            return status;
        }
    }
    return CWIST_SUCCESS;
}

static int exchange(cwist_jq__redis_call *call, cwist_jq__redis_link *link)
{
    cwist_jq__redis_request *request = &link->request;

    cwist_jq__request_reset(request);
    call->build(request, call);
    memcpy(call->names, request->names, sizeof call->names);
    call->size = cwist_jq__request_size(request);
    int status = cwist_jq__redis_link_send(link, &call->replies, call->deadline, &call->sent);
    if (status == CWIST_SUCCESS) {
        status = read_replies(call, link, request->commands);
    } else if (status == CWIST_ERROR_IO) {
        status = read_last_words(call, link, request->commands, status);
    }
    return status;
}

int cwist_jq__redis_try(cwist_jq__redis_call *call)
{
    cwist_jq__redis_link *link = NULL;

    cwist_jq__redis_call_clear(call);
    call->size = 0;
    call->sent = 0;
    call->tried_whole = call->whole;
    call->started = cwist_jq__now();
    cwist_jq__redis_route_get(call->queue, &call->route);
    int status = cwist_jq__redis_take(&link, call->conn, &call->route, call->deadline, call->claim);
    if (status != CWIST_SUCCESS) {
        if (status == CWIST_ERROR_IO) {
            cwist_jq__redis_route_reset(call->queue);
        }
        return status;
    }
    call->started = cwist_jq__now();
    status = exchange(call, link);
    if (status == CWIST_SUCCESS) {
        cwist_jq__redis_give(call->conn, link);
    } else {
        cwist_jq__redis_drop(call->conn, link);
    }
    return status;
}

int cwist_jq__redis_consider(cwist_jq__redis_call *call, const char *command,
                             const redisReply *reply, bool *at_once)
{
    cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);
    int status = cwist_jq__redis_fault_fail(fault, command, reply);

    if (fault == CWIST_JQ_FAULT_NO_SCRIPT && !call->tried_whole) {
        call->whole = true;
        *at_once = true;
        status = CWIST_JQ_AGAIN;
    } else if (fault == CWIST_JQ_FAULT_MOVED) {
        cwist_jq__redis_route_follow(call->queue, &call->route, reply);
        cwist_jq__redis_endpoint now;
        cwist_jq__redis_route_get(call->queue, &now);
        *at_once = !cwist_jq__redis_endpoint_same(&now, &call->route);
    } else if (fault == CWIST_JQ_FAULT_NO_GROUP) {
        status = cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the queue was emptied on the server: %s",
                                reply->str);
    } else if (fault == CWIST_JQ_FAULT_AGAIN) {
        /* Perhaps another server is behind the name by now. */
        cwist_jq__redis_forget_links(call->conn);
        cwist_jq__redis_route_reset(call->queue);
    }
    return status;
}

/* Acts on the first error among the replies that matter. */
static int judge(cwist_jq__redis_call *call, bool *at_once)
{
    for (unsigned i = call->skip; i < call->replies.count; i++) {
        const redisReply *reply = call->replies.at[i];
        if (reply->type == REDIS_REPLY_ERROR) {
            unsigned named = i < CWIST_JQ_REDIS_NAMES ? i : CWIST_JQ_REDIS_NAMES - 1;
            return cwist_jq__redis_consider(call, call->names[named], reply, at_once);
        }
    }
    return CWIST_SUCCESS;
}

int cwist_jq__redis_unknown(void)
{
    cwist_jq__error_prefix("sent, but the reply was lost: done or not done: ");
    return CWIST_ERROR_OUTCOME_UNKNOWN;
}

int cwist_jq__redis_give_up(bool unanswered, int status)
{
    if (unanswered) {
        cwist_jq__error_prefix("sent, but the reply was lost: done or not done; then: ");
        return CWIST_ERROR_OUTCOME_UNKNOWN;
    }
    return status == CWIST_JQ_AGAIN ? CWIST_ERROR_REFUSED : status;
}

int cwist_jq__redis_pause(cwist_jq__redis_pace *pace, const cwist_jq__redis_call *call, int status,
                          bool at_once)
{
    if (status == CWIST_JQ_AGAIN) {
        cwist_jq__redis_keep_text(pace->refusal);
        pace->refused = true;
    } else if (pace->refused && cwist_jq__passed(call->deadline)) {
        status = cwist_jq__fail(CWIST_JQ_AGAIN, "%s", pace->refusal);
    }
    if (!at_once || ++pace->moves > 4) {
        cwist_jq__sleep_until(cwist_jq__backoff_next(&pace->backoff, call->deadline));
    }
    return status;
}

int cwist_jq__redis_run(cwist_jq__redis_call *call)
{
    cwist_jq__redis_pace pace;

    cwist_jq__redis_pace_begin(&pace);
    for (;;) {
        bool at_once = false;
        int status = cwist_jq__redis_try(call);
        if (status == CWIST_SUCCESS) {
            status = judge(call, &at_once);
        } else if (call->repeatable) {
            call->unanswered = call->unanswered || call->sent != 0; /* a first command perhaps */
        } else if (cwist_jq__redis_all_sent(call)) {
            return cwist_jq__redis_unknown();
        }
        if (status != CWIST_JQ_AGAIN && status != CWIST_ERROR_IO) {
            return status;
        }
        status = cwist_jq__redis_pause(&pace, call, status, at_once);
        if (cwist_jq__passed(call->deadline)) {
            return cwist_jq__redis_give_up(call->unanswered, status);
        }
    }
}
