/* The bare loop on Redis: hiredis, used in the plainest right way, sending what the library sends.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define GROUP "cwist-jq"
#define CONSUMER "bare"
#define BATCH_MAX 1000

typedef struct {
    redisContext *conn;
    char stream[200];
    redisReply *claimed; /* the reply of the last read, which owns the ids */
} redis_state;

static redisReply *answer(redis_state *own)
{
    redisReply *reply = NULL;

    if (redisGetReply(own->conn, (void **)&reply) != REDIS_OK) {
        bench_die("redis", own->conn->errstr);
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        bench_die("redis", reply->str);
    }
    return reply;
}

static void open_redis(bench *b)
{
    redis_state *own = calloc(1, sizeof *own);
    char host[64];
    int port = 0;

    bench_address(b, host, sizeof host, &port);
    own->conn = redisConnect(host, port);
    if (own->conn == NULL || own->conn->err != 0) {
        bench_die("redis", "cannot connect");
    }
    (void)snprintf(own->stream, sizeof own->stream, "cwist:jq:%s:s", b->queue);
    b->state = own;
}

static void close_redis(bench *b)
{
    redis_state *own = b->state;

    if (own->claimed != NULL) {
        freeReplyObject(own->claimed);
    }
    redisFree(own->conn);
    free(own);
}

static void send_job(bench *b)
{
    redis_state *own = b->state;
    const char *words[] = {"XADD", own->stream, "*", "type", "", "payload", b->payload};
    size_t lengths[] = {4, strlen(own->stream), 1, 4, 0, 7, b->size};

    (void)redisAppendCommandArgv(own->conn, 7, words, lengths);
}

static void enqueue(bench *b)
{
    send_job(b);
    freeReplyObject(answer(b->state));
}

static void enqueue_many(bench *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        send_job(b);
    }
    for (size_t i = 0; i < count; i++) {
        freeReplyObject(answer(b->state));
    }
}

/* ---- claim and ack ---- */

static void send_read(redis_state *own, size_t most, bool block)
{
    const char *words[11] = {"XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT"};
    char count[24];
    int used = 5;

    (void)snprintf(count, sizeof count, "%zu", most);
    words[used++] = count;
    if (block) {
        words[used++] = "BLOCK";
        words[used++] = "0";
    }
    words[used++] = "STREAMS";
    words[used++] = own->stream;
    words[used++] = ">";
    (void)redisAppendCommandArgv(own->conn, used, words, NULL);
}

/* The entries of a read: [[stream, [[id, [type, T, payload, P]] ...]]], or NULL for none. */
static const redisReply *entries(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->element[1] : NULL;
}

static const redisReply *payload_of(const redisReply *entry)
{
    return entry->element[1]->element[3];
}

static size_t take_read(bench *b)
{
    redis_state *own = b->state;

    own->claimed = answer(own);
    const redisReply *list = entries(own->claimed);
    size_t count = list != NULL ? list->elements : 0;
    for (size_t i = 0; i < count; i++) {
        const redisReply *payload = payload_of(list->element[i]);
        bench_read(b, payload->str, payload->len);
    }
    return count;
}

static void send_acks(redis_state *own)
{
    const char *words[BATCH_MAX + 3];
    size_t lengths[BATCH_MAX + 3];
    const redisReply *list = entries(own->claimed);

    for (size_t i = 0; i < list->elements; i++) {
        words[3 + i] = list->element[i]->element[0]->str;
        lengths[3 + i] = list->element[i]->element[0]->len;
    }
    words[0] = "XACK", lengths[0] = 4;
    words[1] = own->stream, lengths[1] = strlen(own->stream);
    words[2] = GROUP, lengths[2] = sizeof GROUP - 1;
    (void)redisAppendCommandArgv(own->conn, (int)list->elements + 3, words, lengths);
    words[1] = "XDEL", lengths[1] = 4;
    words[2] = own->stream, lengths[2] = strlen(own->stream);
    (void)redisAppendCommandArgv(own->conn, (int)list->elements + 2, words + 1, lengths + 1);
}

static void take_acks(redis_state *own)
{
    size_t count = entries(own->claimed)->elements;

    for (int i = 0; i < 2; i++) {
        redisReply *reply = answer(own);
        if (reply->integer != (long long)count) {
            bench_die("redis", "an ack found no entry");
        }
        freeReplyObject(reply);
    }
    freeReplyObject(own->claimed);
    own->claimed = NULL;
}

/* Two round trips: the read, then both commands of the ack. */
static size_t take(bench *b, size_t most)
{
    redis_state *own = b->state;

    send_read(own, most, false);
    size_t count = take_read(b);
    if (count == 0) {
        bench_die("redis", "the queue is empty");
    }
    send_acks(own);
    take_acks(own);
    return count;
}

/* One round trip: the ack of the last batch and the next read. */
static size_t take_next(bench *b, size_t most)
{
    redis_state *own = b->state;
    bool holding = own->claimed != NULL;

    if (holding) {
        send_acks(own);
    }
    if (most > 0) {
        send_read(own, most, false);
    }
    if (holding) {
        take_acks(own);
    }
    return most > 0 ? take_read(b) : 0;
}

static uint64_t wait_for_job(bench *b)
{
    redis_state *own = b->state;

    send_read(own, 1, true);
    own->claimed = answer(own);
    return bench_now();
}

static uint64_t finish(bench *b)
{
    redis_state *own = b->state;
    const redisReply *payload = payload_of(entries(own->claimed)->element[0]);
    uint64_t stamp = bench_stamp(payload->str, payload->len);

    send_acks(own);
    take_acks(own);
    return stamp;
}

int main(int argc, char **argv)
{
    static const side bare = {open_redis, close_redis,  enqueue, enqueue_many, take,
                              take_next,  wait_for_job, finish,  NULL};

    return bench_main(argc, argv, &bare);
}
