/* One exchange with the server, and the rules for repeating it. */
#include <string.h>

#include "redis/redis.h"

void cwist_jq__redis_call_clear(cwist_jq__redis_call *call)
{
    for (unsigned i = 0; i < call->count; i++) {
        cwist_jq__redis_reply_free(call->replies[i]);
        call->replies[i] = NULL;
    }
    call->count = 0;
}

/*
 * Sending failed half way. When the server closed the connection it may have said why: that no
 * client is welcome, or that an argument is too long for it.
 */
static int last_words(cwist_jq__redis_link *link, const cwist_jq__redis_call *call, int status)
{
    redisReply *reply = NULL;

    if (status != CWIST_ERROR_IO) {
        return status;
    }
    char *cause = cwist_jq__strdup(cwist_jq__error_text());
    int found = cwist_jq__redis_link_read(link, cwist_jq__after_ms(10), call->claim, &reply);
    cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);
    if (found == CWIST_SUCCESS && fault != CWIST_JQ_FAULT_NONE) {
        status = cwist_jq__redis_fault_fail(fault, "send", reply);
    } else if (cause != NULL) {
        (void)cwist_jq__fail(status, "%s", cause);
    }
    cwist_jq__redis_reply_free(reply);
    cwist_jq__free(cause);
    return status;
}

static int read_replies(cwist_jq__redis_call *call, cwist_jq__redis_link *link, unsigned commands)
{
    while (call->count < commands) {
        int status = cwist_jq__redis_link_read(link, call->deadline, call->claim,
                                               &call->replies[call->count]);
        if (status == CWIST_JQ_PENDING) {
            return cwist_jq__fail(CWIST_ERROR_IO, "%s: the server did not answer in time",
                                  call->names[call->count]);
        }
        if (status != CWIST_SUCCESS) {
            return status;
        }
        call->count++;
    }
    return CWIST_SUCCESS;
}

int cwist_jq__redis_try(cwist_jq__redis_call *call)
{
    cwist_jq__redis_link *link = NULL;
    cwist_jq__redis_request request = {0};

    cwist_jq__redis_call_clear(call);
    call->sent = false;
    call->started = cwist_jq__now();
    cwist_jq__redis_route_get(call->queue, &call->route);
    int status = cwist_jq__redis_take(&link, call->conn, &call->route, call->deadline, call->claim);
    if (status != CWIST_SUCCESS) {
        if (status == CWIST_ERROR_IO) {
            cwist_jq__redis_route_reset(call->queue);
        }
        return status;
    }
    call->build(&request, call);
    memcpy(call->names, request.names, sizeof call->names);
    call->started = cwist_jq__now();
    status = cwist_jq__redis_link_send(link, &request, call->deadline, &call->sent);
    if (status == CWIST_SUCCESS) {
        status = read_replies(call, link, request.commands);
    } else {
        status = last_words(link, call, status);
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__redis_give(call->conn, link);
    } else {
        cwist_jq__redis_call_clear(call);
        cwist_jq__redis_drop(call->conn, link);
    }
    cwist_jq__request_clear(&request);
    return status;
}

/* The first error among the replies that matter. */
static cwist_jq__redis_fault judge(const cwist_jq__redis_call *call, unsigned *which)
{
    for (unsigned i = call->skip; i < call->count; i++) {
        cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(call->replies[i]);
        if (fault != CWIST_JQ_FAULT_NONE) {
            *which = i;
            return fault;
        }
    }
    return CWIST_JQ_FAULT_NONE;
}

/* Acts on what the replies say. AGAIN: try once more; *at_once: without waiting. */
static int consider(cwist_jq__redis_call *call, bool *at_once)
{
    unsigned which = 0;
    cwist_jq__redis_fault fault = judge(call, &which);
    int status = cwist_jq__redis_fault_fail(fault, call->names[which], call->replies[which]);

    *at_once = false;
    if (fault == CWIST_JQ_FAULT_NO_SCRIPT && !call->whole) {
        call->whole = true;
        *at_once = true;
        status = CWIST_JQ_AGAIN;
    } else if (fault == CWIST_JQ_FAULT_MOVED) {
        cwist_jq__redis_route_follow(call->queue, &call->route, call->replies[which]);
        cwist_jq__redis_endpoint now;
        cwist_jq__redis_route_get(call->queue, &now);
        *at_once = !cwist_jq__redis_endpoint_same(&now, &call->route);
    } else if (fault == CWIST_JQ_FAULT_NO_GROUP) {
        status = cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the queue was emptied on the server: %s",
                                call->replies[which]->str);
    } else if (fault == CWIST_JQ_FAULT_AGAIN) {
        /* Perhaps another server is behind the name by now. */
        cwist_jq__redis_forget_links(call->conn);
        cwist_jq__redis_route_reset(call->queue);
    }
    return status;
}

static int give_up(const cwist_jq__redis_call *call, int status)
{
    if (call->unanswered) {
        cwist_jq__error_prefix("sent, but the reply was lost: done or not done; then: ");
        return CWIST_ERROR_OUTCOME_UNKNOWN;
    }
    return status == CWIST_JQ_AGAIN ? CWIST_ERROR_REFUSED : status;
}

/*
 * A try that the deadline cut short says little: what the server answered to the one before is told
 * instead. refusal is that answer, or empty.
 */
static int prefer_refusal(const cwist_jq__redis_call *call, int status, const char *refusal)
{
    if (status == CWIST_ERROR_IO && refusal[0] != '\0' && cwist_jq__passed(call->deadline)) {
        return cwist_jq__fail(CWIST_JQ_AGAIN, "%s", refusal);
    }
    return status;
}

int cwist_jq__redis_run(cwist_jq__redis_call *call)
{
    cwist_jq__backoff backoff = {0};
    char refusal[CWIST_JQ_REDIS_TEXT_SIZE] = "";
    unsigned moves = 0;

    for (;;) {
        bool at_once = false;
        int status = cwist_jq__redis_try(call);
        if (status == CWIST_SUCCESS) {
            status = consider(call, &at_once);
        } else if (call->sent) {
            call->unanswered = true;
            if (!call->repeatable) {
                cwist_jq__error_prefix("sent, but the reply was lost: done or not done: ");
                return CWIST_ERROR_OUTCOME_UNKNOWN;
            }
        }
        status = prefer_refusal(call, status, refusal);
        if (status == CWIST_JQ_AGAIN) {
            cwist_jq__redis_keep_text(refusal);
        } else if (status != CWIST_ERROR_IO) {
            return status;
        }
        if (!at_once || ++moves > 4) {
            cwist_jq__sleep_until(cwist_jq__backoff_next(&backoff, call->deadline));
        }
        if (cwist_jq__passed(call->deadline)) {
            return give_up(call, status);
        }
    }
}
