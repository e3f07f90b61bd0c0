/*
 * Pulls. One kind asks for one message and stays with the server until a message, or the end of its
 * own time, comes back. The other, a poll, asks for many and brings what is there at once; the
 * server says when that was all. A puller is used again and again; it is thrown away only when a
 * pull on it had to be taken back.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define PULL_MS 4500 /* what a dead worker may leave behind; also the pace of looks */
#define POLL_MS 10
#define POLL_BYTES (8 * 1024 * 1024)      /* what hangs on one poll when the link is slow */
#define OLD_POLL_BYTES (32 * 1024 * 1024) /* below 2.10, were all messages as large as may be */

void cwist_jq__puller_free(cwist_jq__puller *puller)
{
    if (puller != NULL) {
        natsMsg_Destroy(puller->early);
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
    puller->reply_len = strlen(puller->inbox->subject);
    memcpy(puller->reply, puller->inbox->subject, puller->reply_len);
    puller->reply[puller->reply_len++] = '.';
    cwist_jq__link_ref(link);
    puller->link = link;
    puller->empty = cwist_jq__now();
    *out = puller;
    return CWIST_SUCCESS;
}

/* Takes a puller of this link off the queue's list; those of older links go. */
static cwist_jq__puller *reuse(cwist_jq__nats_queue *own, cwist_jq__lane_name lane,
                               const cwist_jq__link *link)
{
    cwist_jq__puller *found = NULL;
    cwist_jq__puller *old = NULL;

    cwist_jq__lock(&own->lock);
    while (found == NULL && own->free_pullers[lane] != NULL) {
        cwist_jq__puller *puller = own->free_pullers[lane];
        own->free_pullers[lane] = puller->next;
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
                          cwist_jq__lane_name lane, const cwist_jq__wait *wait)
{
    cwist_jq__link *link = NULL;
    int status = cwist_jq__lane_get(&link, cwist_jq__nats_of(queue), lane, wait);

    *puller = NULL;
    if (status == CWIST_SUCCESS) {
        *puller = reuse(cwist_jq__nats_queue_of(queue), lane, link);
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
    if (puller->asked || puller->draining || !cwist_jq__link_usable(puller->link)) {
        cwist_jq__puller_free(puller);
        return;
    }
    cwist_jq__lane_name lane = puller->link->for_bursts ? CWIST_JQ_TOGETHER : CWIST_JQ_ALONE;
    cwist_jq__lock(&own->lock);
    puller->next = own->free_pullers[lane];
    own->free_pullers[lane] = puller;
    cwist_jq__unlock(&own->lock);
}

bool cwist_jq__is_delivery(natsMsg *message)
{
    const char *reply = natsMsg_GetReply(message);
    return reply != NULL && strncmp(reply, "$JS.ACK.", 8) == 0;
}

/*
 * Takes what is left of earlier pulls. Their statuses say nothing any more. A delivery is kept: it
 * is a job like others, but its lease runs for as long as it may have lain here.
 */
static void clear_inbox(cwist_jq__puller *puller)
{
    uint64_t stamp = cwist_jq__now();

    while (puller->early == NULL) {
        natsMsg *message = NULL;
        natsStatus got = natsSubscription_NextMsg(&message, puller->inbox->subscription, 0);
        if (got == NATS_OK && cwist_jq__is_delivery(message)) {
            puller->early = message;
        } else if (got == NATS_OK) {
            natsMsg_Destroy(message);
        } else if (got != NATS_NO_RESPONDERS) {
            puller->empty = stamp;
            return;
        }
    }
}

/* Sends a pull that brings `wanted` deliveries, with the one that is there already. */
static int send_pull(cwist_jq__queue *queue, cwist_jq__puller *puller, const char *body,
                     size_t wanted)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);

    puller->violations = cwist_jq__violations(puller->link);
    puller->asked = true;
    puller->wanted = wanted;
    puller->listens = 0;
    if (puller->early != NULL && wanted == 1) {
        return CWIST_SUCCESS; /* there is nothing to ask for */
    }
    (void)cwist_jq__put_number(puller->reply + puller->reply_len, ++puller->pulls);
    natsStatus sent = natsConnection_PublishRequest(puller->link->nc, own->next, puller->reply,
                                                    body, (int)strlen(body));
    if (sent != NATS_OK) {
        cwist_jq__link_break(puller->link);
        return CWIST_JQ_LOST;
    }
    return CWIST_SUCCESS;
}

/*
 * Deliveries wait in memory until they are taken, so their bytes are bounded. Below 2.10 a pull
 * that meets its own bound loses redeliveries (seen with 2.9.10: they come back only when their
 * lease is over), so there the number is chosen such that the bytes cannot be too many.
 */
int cwist_jq__poll(cwist_jq__queue *queue, cwist_jq__puller *puller, size_t most)
{
    cwist_jq__nats *nats = cwist_jq__nats_of(queue);
    char body[96];

    clear_inbox(puller);
    size_t early = puller->early != NULL ? 1 : 0;
    if (nats->below_2_10) {
        int64_t largest = atomic_load(&nats->max_payload);
        size_t safe = OLD_POLL_BYTES / (largest > 0 ? (size_t)largest : 1);
        most = most < safe ? most : safe > 0 ? safe : 1;
        (void)snprintf(body, sizeof body, "{\"batch\":%zu,\"no_wait\":true}", most - early);
    } else if (most == 1) {
        (void)snprintf(body, sizeof body, "{\"batch\":1,\"no_wait\":true}");
    } else {
        (void)snprintf(body, sizeof body, "{\"batch\":%zu,\"no_wait\":true,\"max_bytes\":%d}",
                       most - early, POLL_BYTES);
    }
    puller->ends = cwist_jq__now();
    return send_pull(queue, puller, body, most);
}

int cwist_jq__pull(cwist_jq__queue *queue, cwist_jq__puller *puller, uint64_t deadline)
{
    uint64_t now = cwist_jq__now();
    uint64_t ends = cwist_jq__earlier(deadline, cwist_jq__add_ms(now, PULL_MS));
    bool poll = ends <= now + CWIST_JQ_MS;
    char body[64];

    clear_inbox(puller);
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
    puller->ends = ends;
    return send_pull(queue, puller, body, 1);
}

/* Counts a delivery of the pull off. */
static void count_off(cwist_jq__puller *puller)
{
    puller->wanted -= puller->wanted > 0 ? 1 : 0;
    puller->asked = puller->wanted > 0;
}

/*
 * Takes the next message that concerns the pull. The server's words about an earlier one do not:
 * it may tell that a poll is complete after that brought all that it was asked for (2.15.1 does).
 */
static natsStatus take_next(natsMsg **message, cwist_jq__puller *puller, uint64_t ms)
{
    if (puller->early != NULL) {
        *message = puller->early;
        puller->early = NULL;
        return NATS_OK;
    }
    for (;;) {
        natsStatus got =
            natsSubscription_NextMsg(message, puller->inbox->subscription, (int64_t)ms);
        if (got != NATS_OK || cwist_jq__is_delivery(*message) ||
            strcmp(natsMsg_GetSubject(*message), puller->reply) == 0) {
            return got;
        }
        natsMsg_Destroy(*message);
    }
}

/* The same, and notes when nothing was there: what comes later arrived after that. */
static natsStatus take_stamped(natsMsg **message, cwist_jq__puller *puller, uint64_t ms)
{
    natsStatus got = take_next(message, puller, 0);

    if (got == NATS_TIMEOUT) {
        uint64_t stamp = cwist_jq__now();
        got = take_next(message, puller, 0);
        if (got == NATS_TIMEOUT) {
            puller->empty = stamp > puller->empty ? stamp : puller->empty;
            got = take_next(message, puller, ms);
        }
    }
    return got;
}

int cwist_jq__pull_next(natsMsg **message, cwist_jq__queue *queue, cwist_jq__puller *puller,
                        uint64_t ms)
{
    natsStatus got = take_stamped(message, puller, ms);

    if (got == NATS_OK) {
        /* A job's headers are not touched here: libnats tells only once that it cannot read them.
         */
        if (cwist_jq__is_delivery(*message)) {
            count_off(puller);
            return CWIST_SUCCESS;
        }
        return natsMsg_IsNoResponders(*message) ? CWIST_JQ_NO_RESPONDERS : CWIST_SUCCESS;
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
                                     cwist_jq__nats_queue_of(queue)->next, puller->inbox->heard);
    return status != CWIST_SUCCESS ? status : CWIST_JQ_PENDING;
}

/*
 * Waits for a delivery as long as the link brings anything: until nothing came for `patience` ms.
 * NULL: nothing more, or the server's last word, which is also the end of a drained inbox.
 */
static natsMsg *take_rest(cwist_jq__puller *puller, uint64_t patience)
{
    natsMsg *message = NULL;
    natsStatus got = NATS_OK;
    uint64_t before = 0;
    uint64_t count = cwist_jq__link_messages(puller->link);

    do {
        uint64_t until = cwist_jq__earlier(cwist_jq__after_ms(patience), puller->listens);
        before = count;
        got = take_stamped(&message, puller, cwist_jq__ms_left(until));
        count = cwist_jq__link_messages(puller->link);
    } while (got == NATS_TIMEOUT && count != before && !cwist_jq__passed(puller->listens));
    if (got != NATS_OK) {
        return NULL;
    }
    if (cwist_jq__is_delivery(message)) {
        count_off(puller);
        return message;
    }
    puller->asked = false;
    natsMsg_Destroy(message);
    return NULL;
}

/*
 * A pull cannot be taken back: a server that has just picked it counts the delivery, whether
 * anybody listens any more or not. So we listen a little longer, for a job that is on its way.
 * Draining then says that we listen no more, and goes on taking what was sent before the server
 * heard of it: its answer stands behind all that.
 */
natsMsg *cwist_jq__pull_cancel(const cwist_jq__queue *queue, cwist_jq__puller *puller)
{
    uint64_t patience = cwist_jq__late_ms(cwist_jq__nats_of(queue));
    natsMsg *message = NULL;

    if (puller->listens == 0) {
        puller->listens = cwist_jq__after_ms(queue->conn->operation_timeout_ms);
    }
    if (puller->asked && !puller->draining && cwist_jq__link_usable(puller->link)) {
        message = take_rest(puller, patience);
    }
    if (message == NULL && puller->asked && !puller->draining &&
        cwist_jq__link_usable(puller->link) &&
        natsSubscription_Drain(puller->inbox->subscription) == NATS_OK) {
        puller->draining = true;
        if (puller->link->for_bursts) {
            (void)cwist_jq__link_flush(puller->link);
        }
    }
    if (message == NULL && puller->asked && puller->draining) {
        message = take_rest(puller, patience);
    }
    return message;
}
