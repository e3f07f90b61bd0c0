/*
 * Makes many jobs of a kind in a queue on NATS, as quickly as libnats can. Not measured.
 *
 *   crowd_nats URL QUEUE held|delayed|dead COUNT SIZE
 *
 * The jobs that become held or delayed are there before.
 */
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define CONSUMER "cwist-jq"
#define BATCH 1000
#define PATIENCE_MS 30000
#define DELAY_MS 36000000 /* ten hours */

static natsConnection *conn;
static jsCtx *js;

static void check(natsStatus status, const char *what)
{
    if (status != NATS_OK) {
        bench_die(what, natsStatus_GetText(status));
    }
}

/* Claims jobs and keeps them, or hands them back for much later. */
static void claim_all(const char *queue, size_t count, bool delayed)
{
    natsSubscription *sub = NULL;
    jsSubOptions options;
    char filter[200];

    check(jsSubOptions_Init(&options), "subscribe");
    options.Stream = queue;
    options.Consumer = CONSUMER;
    (void)snprintf(filter, sizeof filter, "%s.>", queue);
    check(js_PullSubscribe(&sub, js, filter, CONSUMER, NULL, &options, NULL), "subscribe");
    while (count > 0) {
        natsMsgList list = {NULL, 0};
        int most = count < BATCH ? (int)count : BATCH;
        check(natsSubscription_Fetch(&list, sub, most, PATIENCE_MS, NULL), "fetch");
        for (int i = 0; delayed && i < list.Count; i++) {
            check(natsMsg_NakWithDelay(list.Msgs[i], DELAY_MS, NULL), "nak");
        }
        count -= (size_t)list.Count;
        natsMsgList_Destroy(&list);
    }
    check(natsConnection_Flush(conn), "flush");
    natsSubscription_Destroy(sub);
}

static void bury_one(const char *queue, size_t number, const char *payload, size_t size)
{
    natsMsg *msg = NULL;
    char subject[250];
    char id[24];

    (void)snprintf(id, sizeof id, "%zu", number);
    (void)snprintf(subject, sizeof subject, "%s.dead.%s.1", queue, id);
    check(natsMsg_Create(&msg, subject, NULL, payload, (int)size), "message");
    check(natsMsgHeader_Set(msg, "Cwist-Id", id), "header");
    check(natsMsgHeader_Set(msg, "Cwist-Attempts", "5"), "header");
    check(natsMsgHeader_Set(msg, "Cwist-First", "1"), "header");
    check(natsMsgHeader_Set(msg, "Cwist-Cause", "lease-expired"), "header");
    check(js_PublishMsgAsync(js, &msg, NULL), "publish");
    natsMsg_Destroy(msg);
}

static void bury_all(const char *queue, size_t count, size_t size)
{
    char *payload = calloc(1, size);

    if (payload == NULL) {
        bench_die("payload", "out of memory");
    }
    for (size_t i = 1; i <= count; i++) {
        bury_one(queue, i, payload, size);
        if (i % BATCH == 0 || i == count) {
            check(natsConnection_Flush(conn), "flush");
            check(js_PublishAsyncComplete(js, NULL), "publish");
        }
    }
    free(payload);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        bench_die(argv[0], "say URL QUEUE held|delayed|dead COUNT SIZE");
    }
    size_t count = (size_t)strtoull(argv[4], NULL, 10);
    check(natsConnection_ConnectTo(&conn, argv[1]), "connect");
    check(natsConnection_JetStream(&js, conn, NULL), "jetstream");
    if (strcmp(argv[3], "dead") == 0) {
        bury_all(argv[2], count, (size_t)strtoull(argv[5], NULL, 10));
    } else {
        claim_all(argv[2], count, strcmp(argv[3], "delayed") == 0);
    }
    jsCtx_Destroy(js);
    natsConnection_Destroy(conn);
    nats_Close();
    return 0;
}
