/*
 * Pulls: a request for one message that stays with the server until a message, or the end of its
 * own time, comes back. A puller is used again and again; it is thrown away only when a pull on it
 * had to be taken back.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define PULL_MS 4500 /* what a dead worker may leave behind; also the pace of looks */
#define POLL_MS 10
#define CANCEL_MS 100

void cwist_jq__puller_free(cwist_jq__puller *puller)
{
    if (puller != NULL) {
        cwist_jq__inbox_give(puller->link, puller->inbox, false);
        cwist_jq__link_unref(puller->link);
        cwist_jq__free(puller);
    }
}

static int make_puller(cwist_jq__puller **out, cwist_jq__link *link)
{
    cwist_jq__puller *puller = cwist_jq__calloc(1, sizeof *puller);

    *out = NULL;
    if (puller == NULL) {
        return cwist_jq__no_memory();
    }
    puller->inbox = cwist_jq__inbox_take(link);
    if (puller->inbox == NULL) {
        cwist_jq__free(puller);
        return cwist_jq__link_usable(link) ? cwist_jq__no_memory() : CWIST_JQ_LOST;
    }
    cwist_jq__link_ref(link);
    puller->link = link;
    *out = puller;
    return CWIST_SUCCESS;
}

/* Takes a puller of this link off the queue's list; those of older links go. */
static cwist_jq__puller *reuse(cwist_jq__nats_queue *own, const cwist_jq__link *link)
{
    cwist_jq__puller *found = NULL;
    cwist_jq__puller *old = NULL;

    cwist_jq__lock(&own->lock);
    while (found == NULL && own->free_pullers != NULL) {
        cwist_jq__puller *puller = own->free_pullers;
        own->free_pullers = puller->next;
        if (puller->link == link) {
            found = puller;
        } else {
            puller->next = old;
            old = puller;
        }
    }
    cwist_jq__unlock(&own->lock);
    while (old != NULL) {
        cwist_jq__puller *next = old->next;
        cwist_jq__puller_free(old);
        old = next;
    }
    return found;
}

int cwist_jq__puller_take(cwist_jq__puller **puller, cwist_jq__queue *queue,
                          const cwist_jq__wait *wait)
{
    cwist_jq__link *link = NULL;
    int status = cwist_jq__link_get(&link, cwist_jq__nats_of(queue), wait);

    *puller = NULL;
    if (status == CWIST_SUCCESS) {
        *puller = reuse(cwist_jq__nats_queue_of(queue), link);
        if (*puller == NULL) {
            status = make_puller(puller, link);
        }
    }
    cwist_jq__link_unref(link);
    return status;
}

void cwist_jq__puller_give(cwist_jq__queue *queue, cwist_jq__puller *puller)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);

    if (puller == NULL) {
        return;
    }
    if (puller->asked || !cwist_jq__link_usable(puller->link)) {
        cwist_jq__puller_free(puller);
        return;
    }
    cwist_jq__lock(&own->lock);
    puller->next = own->free_pullers;
    own->free_pullers = puller;
    cwist_jq__unlock(&own->lock);
}

int cwist_jq__pull(cwist_jq__queue *queue, cwist_jq__puller *puller, uint64_t deadline)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    uint64_t now = cwist_jq__now();
    uint64_t ends = cwist_jq__earlier(deadline, cwist_jq__add_ms(now, PULL_MS));
    bool poll = ends <= now + CWIST_JQ_MS;
    char body[64];

    /*
     * From 2.10 on a pull that does not wait may be answered before the server looks at a job that
     * was stored just before; so a poll waits a little. Below, a redelivery that meets the end of a
     * pull may go uncounted; so short pulls are avoided there.
     */
    if (poll && cwist_jq__nats_of(queue)->below_2_10) {
        ends = now;
        (void)snprintf(body, sizeof body, "{\"batch\":1,\"no_wait\":true}");
    } else {
        ends = poll ? cwist_jq__add_ms(now, POLL_MS) : ends;
        (void)snprintf(body, sizeof body, "{\"batch\":1,\"expires\":%llu}",
                       (unsigned long long)(ends - now));
    }
    puller->violations = cwist_jq__violations(puller->link);
    puller->ends = ends;
    puller->empty = now;
    puller->asked = true;
    natsStatus sent = natsConnection_PublishRequest(
        puller->link->nc, own->next, puller->inbox->subject, body, (int)strlen(body));
    if (sent != NATS_OK) {
        cwist_jq__link_break(puller->link);
        return CWIST_JQ_LOST;
    }
    return CWIST_SUCCESS;
}

bool cwist_jq__is_delivery(natsMsg *message)
{
    const char *reply = natsMsg_GetReply(message);
    return reply != NULL && strncmp(reply, "$JS.ACK.", 8) == 0;
}

int cwist_jq__pull_next(natsMsg **message, cwist_jq__queue *queue, cwist_jq__puller *puller,
                        uint64_t ms)
{
    natsSubscription *subscription = puller->inbox->subscription;
    uint64_t stamp = cwist_jq__now();
    natsStatus got = natsSubscription_NextMsg(message, subscription, 0);

    if (got == NATS_TIMEOUT) {
        puller->empty = stamp > puller->empty ? stamp : puller->empty;
        got = natsSubscription_NextMsg(message, subscription, (int64_t)ms);
    }
    if (got == NATS_OK) {
        /* A job's headers are not touched here: libnats tells only once that it cannot read them.
         */
        bool is_status = !cwist_jq__is_delivery(*message);
        return is_status && natsMsg_IsNoResponders(*message) ? CWIST_JQ_NO_RESPONDERS
                                                             : CWIST_SUCCESS;
    }
    *message = NULL;
    if (got == NATS_NO_RESPONDERS) {
        return CWIST_JQ_NO_RESPONDERS;
    }
    if (got != NATS_TIMEOUT) {
        cwist_jq__link_break(puller->link);
        return CWIST_JQ_LOST;
    }
    int status = cwist_jq__violation(puller->link, puller->violations,
                                     cwist_jq__nats_queue_of(queue)->next, puller->inbox->subject);
    return status != CWIST_SUCCESS ? status : CWIST_JQ_PENDING;
}

/* Takes messages until `until`: the delivery, or NULL. Ends early at the server's last word. */
static natsMsg *take_rest(cwist_jq__puller *puller, uint64_t until)
{
    for (;;) {
        natsMsg *message = NULL;
        uint64_t left = cwist_jq__ms_left(until);
        natsStatus got =
            natsSubscription_NextMsg(&message, puller->inbox->subscription, (int64_t)left);
        if (got == NATS_OK) {
            puller->asked = false;
            if (cwist_jq__is_delivery(message)) {
                return message;
            }
            natsMsg_Destroy(message);
            return NULL;
        }
        if (got != NATS_TIMEOUT || left == 0) {
            return NULL;
        }
    }
}

/*
 * A pull cannot be taken back: a server that has just picked it counts the delivery, whether
 * anybody listens any more or not. So we listen a little longer, for a job that is on its way.
 * Draining then says that we listen no more, and goes on taking what was sent before the server
 * heard of it.
 */
natsMsg *cwist_jq__pull_cancel(const cwist_jq__queue *queue, cwist_jq__puller *puller)
{
    uint64_t until = cwist_jq__after_ms(cwist_jq__late_ms(cwist_jq__nats_of(queue)));
    natsMsg *message = NULL;

    if (cwist_jq__link_usable(puller->link)) {
        message = take_rest(puller, until);
    }
    if (puller->asked && cwist_jq__link_usable(puller->link) &&
        natsSubscription_Drain(puller->inbox->subscription) == NATS_OK) {
        message = take_rest(puller, cwist_jq__after_ms(CANCEL_MS));
        puller->asked = true; /* the inbox is spent */
    }
    return message;
}
