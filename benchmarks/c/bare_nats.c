/*
 * The bare loop on NATS: libnats, used in the plainest right way, sending what the library sends.
 *
 * libnats writes its buffer every millisecond unless it is told otherwise. Single claims tell it to
 * send at once. Bulk enqueue would lose by that, so it flushes on purpose.
 *
 * The tuned loops do what nobody writes first: publish with an inbox of their own, which costs less
 * than js_PublishAsync, and claim batches on a connection that sends at once, which costs a system
 * call for each ack and saves the millisecond.
 */
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define CONSUMER "cwist-jq"
#define PATIENCE_MS 10000
#define FOR_EVER_MS 3600000

typedef struct {
    natsConnection *conn;
    jsCtx *js;
    natsSubscription *sub; /* NULL until something is claimed */
    natsMsgList claimed;
    natsInbox *inbox; /* of the tuned loop: where the server answers to a publish */
    natsSubscription *answers;
    char subject[200];
} nats_state;

static void check(natsStatus status, const char *what)
{
    if (status != NATS_OK) {
        bench_die(what, natsStatus_GetText(status));
    }
}

static void open_inbox(nats_state *own)
{
    check(natsInbox_Create(&own->inbox), "inbox");
    check(natsConnection_SubscribeSync(&own->answers, own->conn, own->inbox), "inbox");
    check(natsSubscription_SetPendingLimits(own->answers, -1, -1), "inbox");
}

static void open_nats(bench *b)
{
    nats_state *own = calloc(1, sizeof *own);
    natsOptions *options = NULL;
    bool draining = b->tuned && strcmp(b->operation, "drain-tuned") == 0;

    check(natsOptions_Create(&options), "options");
    check(natsOptions_SetURL(options, b->url), "url");
    check(natsOptions_SetSendAsap(options, b->one_at_a_time || draining), "options");
    check(natsConnection_Connect(&own->conn, options), "connect");
    natsOptions_Destroy(options);
    check(natsConnection_JetStream(&own->js, own->conn, NULL), "jetstream");
    (void)snprintf(own->subject, sizeof own->subject, "%s.jobs", b->queue);
    if (b->tuned) {
        open_inbox(own);
    }
    b->state = own;
}

static void close_nats(bench *b)
{
    nats_state *own = b->state;

    natsMsgList_Destroy(&own->claimed);
    natsSubscription_Destroy(own->sub);
    natsSubscription_Destroy(own->answers);
    natsInbox_Destroy(own->inbox);
    jsCtx_Destroy(own->js);
    natsConnection_Destroy(own->conn);
    free(own);
    nats_Close();
}

static void enqueue(bench *b)
{
    nats_state *own = b->state;
    jsPubAck *ack = NULL;

    check(js_Publish(&ack, own->js, own->subject, b->payload, (int)b->size, NULL, NULL), "publish");
    jsPubAck_Destroy(ack);
}

static void take_answer(nats_state *own)
{
    natsMsg *msg = NULL;

    check(natsSubscription_NextMsg(&msg, own->answers, PATIENCE_MS), "publish");
    if (strstr(natsMsg_GetData(msg), "\"error\"") != NULL) {
        bench_die("publish", natsMsg_GetData(msg));
    }
    natsMsg_Destroy(msg);
}

static void enqueue_many_tuned(bench *b, size_t count)
{
    nats_state *own = b->state;

    for (size_t i = 0; i < count; i++) {
        check(natsConnection_PublishRequest(own->conn, own->subject, own->inbox, b->payload,
                                            (int)b->size),
              "publish");
    }
    check(natsConnection_Flush(own->conn), "flush");
    for (size_t i = 0; i < count; i++) {
        take_answer(own);
    }
}

static void enqueue_many(bench *b, size_t count)
{
    nats_state *own = b->state;

    if (b->tuned) {
        enqueue_many_tuned(b, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        check(js_PublishAsync(own->js, own->subject, b->payload, (int)b->size, NULL), "publish");
    }
    check(natsConnection_Flush(own->conn), "flush");
    check(js_PublishAsyncComplete(own->js, NULL), "publish");
}

/* ---- claim and ack ---- */

static void fetch(bench *b, size_t most, int64_t timeout_ms)
{
    nats_state *own = b->state;

    if (own->sub == NULL) {
        jsSubOptions options;
        char filter[200];
        check(jsSubOptions_Init(&options), "subscribe");
        options.Stream = b->queue;
        options.Consumer = CONSUMER;
        (void)snprintf(filter, sizeof filter, "%s.>", b->queue);
        check(js_PullSubscribe(&own->sub, own->js, filter, CONSUMER, NULL, &options, NULL),
              "subscribe");
        check(natsSubscription_SetPendingLimits(own->sub, -1, -1), "subscribe");
    }
    check(natsSubscription_Fetch(&own->claimed, own->sub, (int)most, timeout_ms, NULL), "fetch");
}

static void read_all(bench *b)
{
    nats_state *own = b->state;

    for (int i = 0; i < own->claimed.Count; i++) {
        natsMsg *msg = own->claimed.Msgs[i];
        bench_read(b, natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg));
    }
}

/* A single job is acked as the library does it: confirmed. */
static size_t ack_all(bench *b)
{
    nats_state *own = b->state;
    int count = own->claimed.Count;

    for (int i = 0; i < count; i++) {
        natsMsg *msg = own->claimed.Msgs[i];
        check(b->one_at_a_time ? natsMsg_AckSync(msg, NULL, NULL) : natsMsg_Ack(msg, NULL), "ack");
    }
    natsMsgList_Destroy(&own->claimed);
    return (size_t)count;
}

static size_t take(bench *b, size_t most)
{
    fetch(b, most, PATIENCE_MS);
    read_all(b);
    return ack_all(b);
}

/* The acks wait in the buffer for the next fetch, as they do in take(). */
static size_t take_next(bench *b, size_t most)
{
    nats_state *own = b->state;

    (void)ack_all(b);
    if (most == 0) {
        return 0;
    }
    fetch(b, most, PATIENCE_MS);
    read_all(b);
    return (size_t)own->claimed.Count;
}

static uint64_t wait_for_job(bench *b)
{
    fetch(b, 1, FOR_EVER_MS);
    return bench_now();
}

static uint64_t finish(bench *b)
{
    nats_state *own = b->state;
    natsMsg *msg = own->claimed.Msgs[0];
    uint64_t stamp = bench_stamp(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg));

    (void)ack_all(b);
    return stamp;
}

static void settled(bench *b)
{
    nats_state *own = b->state;

    check(natsConnection_Flush(own->conn), "flush");
}

int main(int argc, char **argv)
{
    static const side bare = {open_nats, close_nats,   enqueue, enqueue_many, take,
                              take_next, wait_for_job, finish,  settled};

    return bench_main(argc, argv, &bare);
}
