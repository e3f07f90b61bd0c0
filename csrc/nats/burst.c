/*
 * Bursts: many messages in one write, and the replies to some of them. The server takes the
 * messages of one connection in their order.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

int cwist_jq__burst_begin(cwist_jq__burst *burst, cwist_jq__nats *nats, const cwist_jq__wait *wait)
{
    memset(burst, 0, sizeof *burst);
    int status = cwist_jq__lane_get(&burst->link, nats, CWIST_JQ_TOGETHER, wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    burst->violations = cwist_jq__violations(burst->link);
    burst->inbox = cwist_jq__inbox_take(burst->link);
    if (burst->inbox == NULL) {
        status = cwist_jq__link_usable(burst->link) ? cwist_jq__no_memory() : CWIST_JQ_UNSENT;
        cwist_jq__link_unref(burst->link);
    }
    return status;
}

int cwist_jq__burst_add(cwist_jq__burst *burst, const cwist_jq__request *request, size_t slot)
{
    char reply[CWIST_JQ_INBOX_SIZE + 24];

    burst->subject = request->subject;
    if (slot == CWIST_JQ_NO_REPLY) {
        return cwist_jq__publish(burst->link, request, NULL);
    }
    size_t len = burst->inbox_len;
    if (len == 0) {
        burst->inbox_len = len = strlen(burst->inbox->subject);
    }
    memcpy(reply, burst->inbox->subject, len);
    reply[len] = '.';
    (void)cwist_jq__put_number(reply + len + 1, slot);
    int status = cwist_jq__publish(burst->link, request, reply);
    burst->open += status == CWIST_SUCCESS ? 1 : 0;
    return status;
}

bool cwist_jq__burst_flush(cwist_jq__burst *burst)
{
    return cwist_jq__link_flush(burst->link);
}

int cwist_jq__burst_next(natsMsg **reply, size_t *slot, cwist_jq__burst *burst,
                         const cwist_jq__wait *wait)
{
    uint64_t number = 0;
    int status = cwist_jq__await_reply(reply, burst->link, burst->inbox, burst->subject,
                                       burst->violations, wait);

    if (status != CWIST_SUCCESS && status != CWIST_JQ_NO_RESPONDERS) {
        return status;
    }
    if (*reply == NULL) { /* libnats kept what would say which; it does so for one reply only */
        number = 0;
    } else if (!cwist_jq__decimal(&number, natsMsg_GetSubject(*reply) + burst->inbox_len + 1)) {
        return cwist_jq__fail(CWIST_ERROR_PROTOCOL, "the server answered something else");
    }
    *slot = (size_t)number;
    burst->open -= burst->open > 0 ? 1 : 0;
    return status;
}

void cwist_jq__burst_end(cwist_jq__burst *burst)
{
    /* What is still to come would be taken for an answer to the next burst. */
    cwist_jq__inbox_give(burst->link, burst->inbox, burst->open == 0);
    cwist_jq__link_unref(burst->link);
}
