/* One message to the server and the reply to it, on the connection that there is. */
#include <limits.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

int cwist_jq__wait_check(const cwist_jq__wait *wait)
{
    int status = wait->claim != NULL ? cwist_jq__claim_check(wait->claim) : CWIST_SUCCESS;

    if (status == CWIST_SUCCESS && cwist_jq__passed(wait->deadline)) {
        status = CWIST_JQ_PENDING;
    }
    return status;
}

int64_t cwist_jq__wait_slice(const cwist_jq__wait *wait, uint64_t ms)
{
    uint64_t left = cwist_jq__ms_left(wait->deadline);
    return (int64_t)(left < ms ? left : ms);
}

int cwist_jq__wait_backoff(const cwist_jq__wait *wait, cwist_jq__backoff *backoff)
{
    uint64_t until = cwist_jq__backoff_next(backoff, wait->deadline);
    int status = cwist_jq__wait_check(wait);

    while (status == CWIST_SUCCESS && !cwist_jq__passed(until)) {
        cwist_jq__sleep_until(cwist_jq__earlier(until, cwist_jq__after_ms(CWIST_JQ_SLICE_MS)));
        status = cwist_jq__wait_check(wait);
    }
    return status;
}

static int from_publish(natsStatus status)
{
    switch (status) {
    case NATS_OK:
        return CWIST_SUCCESS;
    case NATS_NO_MEMORY:
        return cwist_jq__no_memory();
    case NATS_MAX_PAYLOAD:
        return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                              "the message is larger than the server's max_payload");
    case NATS_CONNECTION_CLOSED:
    case NATS_CONNECTION_DISCONNECTED:
        return CWIST_JQ_UNSENT;
    default: /* a part may have left: whether all of it did is not known */
        return CWIST_JQ_LOST;
    }
}

static natsStatus add_headers(natsMsg *message, const cwist_jq__request *request)
{
    natsStatus status = NATS_OK;

    for (size_t i = 0; status == NATS_OK && i < request->header_count; i++) {
        status = natsMsgHeader_Add(message, request->headers[i].name, request->headers[i].value);
    }
    return status;
}

static natsStatus publish_with_headers(cwist_jq__link *link, const cwist_jq__request *request,
                                       const char *reply_to)
{
    natsMsg *message = NULL;
    natsStatus status =
        natsMsg_Create(&message, request->subject, reply_to, request->data, (int)request->len);

    if (status == NATS_OK) {
        status = add_headers(message, request);
    }
    if (status == NATS_OK) {
        status = natsConnection_PublishMsg(link->nc, message);
    }
    natsMsg_Destroy(message);
    return status;
}

int cwist_jq__publish(cwist_jq__link *link, const cwist_jq__request *request, const char *reply_to)
{
    natsStatus sent = NATS_OK;

    if (request->len > INT_MAX) {
        return cwist_jq__fail(CWIST_ERROR_TOO_LARGE, "the message is larger than 2 GiB");
    }
    if (request->header_count != 0) {
        sent = publish_with_headers(link, request, reply_to);
    } else if (reply_to != NULL) {
        sent = natsConnection_PublishRequest(link->nc, request->subject, reply_to, request->data,
                                             (int)request->len);
    } else {
        sent = natsConnection_Publish(link->nc, request->subject, request->data, (int)request->len);
    }
    int status = from_publish(sent);
    if (status == CWIST_JQ_LOST) {
        cwist_jq__link_break(link);
    }
    return status;
}

int cwist_jq__await_reply(natsMsg **reply, cwist_jq__link *link, cwist_jq__inbox *inbox,
                          const char *subject, unsigned violations, const cwist_jq__wait *wait)
{
    for (;;) {
        int64_t ms = cwist_jq__wait_slice(wait, CWIST_JQ_SLICE_MS);
        natsStatus got = natsSubscription_NextMsg(reply, inbox->subscription, ms);
        if (got == NATS_OK) {
            return natsMsg_IsNoResponders(*reply) ? CWIST_JQ_NO_RESPONDERS : CWIST_SUCCESS;
        }
        *reply = NULL;
        if (got == NATS_NO_RESPONDERS) {
            return CWIST_JQ_NO_RESPONDERS;
        }
        if (got != NATS_TIMEOUT) {
            cwist_jq__link_break(link);
            return CWIST_JQ_LOST;
        }
        int status = cwist_jq__violation(link, violations, subject, inbox->heard);
        if (status == CWIST_SUCCESS) {
            status = cwist_jq__wait_check(wait);
        }
        if (status != CWIST_SUCCESS) {
            return status == CWIST_JQ_PENDING ? CWIST_JQ_LOST : status;
        }
    }
}

int cwist_jq__request_send(natsMsg **reply, cwist_jq__link *link, const cwist_jq__request *request,
                           const cwist_jq__wait *wait)
{
    unsigned violations = cwist_jq__violations(link);

    *reply = NULL;
    cwist_jq__inbox *inbox = cwist_jq__inbox_take(link);
    if (inbox == NULL) {
        return cwist_jq__link_usable(link) ? cwist_jq__no_memory() : CWIST_JQ_UNSENT;
    }
    int status = cwist_jq__publish(link, request, inbox->reply);
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__await_reply(reply, link, inbox, request->subject, violations, wait);
    }
    /* An inbox that was asked through and got no answer may get it later. */
    cwist_jq__inbox_give(link, inbox, status == CWIST_SUCCESS || status == CWIST_JQ_NO_RESPONDERS);
    if (status != CWIST_SUCCESS) {
        natsMsg_Destroy(*reply);
        *reply = NULL;
    }
    return status;
}
