/* Our C library, on either engine. */
#include <cwist/sys/job/durable_queue_ext.h>
#include <stdlib.h>

#include "frame.h"

#define PATIENCE_MS 10000

typedef struct {
    cwist_job_conn_t *conn;
    cwist_job_queue_t *queue;
    cwist_job_item_t items[CWIST_JOB_BATCH_MAX];
    cwist_job_stored_t stored[CWIST_JOB_BATCH_MAX];
    cwist_job_t *jobs[CWIST_JOB_BATCH_MAX]; /* claimed and not acked yet */
    cwist_job_t *next[CWIST_JOB_BATCH_MAX];
    int codes[CWIST_JOB_BATCH_MAX];
    size_t count;
} ours_state;

static void check(cwist_error_t error, const char *what)
{
    if (!cwist_error_is_ok(&error)) {
        bench_die(what, cwist_job_last_error());
    }
}

static void open_ours(bench *b)
{
    ours_state *own = calloc(1, sizeof *own);
    cwist_job_queue_opts_t options = {.name = b->queue, .visibility_timeout_ms = b->visibility};

    check(cwist_job_conn_open(&own->conn, b->url, NULL), "connect");
    check(cwist_job_queue_open(&own->queue, own->conn, &options), "queue");
    for (size_t i = 0; i < CWIST_JOB_BATCH_MAX; i++) {
        own->items[i].payload = b->payload;
        own->items[i].len = b->size;
    }
    b->state = own;
}

static void close_ours(bench *b)
{
    ours_state *own = b->state;

    cwist_job_queue_destroy(own->queue);
    cwist_job_conn_close(own->conn);
    free(own);
}

static void enqueue(bench *b)
{
    ours_state *own = b->state;

    check(cwist_job_queue_enqueue(own->queue, b->payload, b->size, NULL), "enqueue");
}

static void enqueue_many(bench *b, size_t count)
{
    ours_state *own = b->state;

    check(cwist_job_queue_enqueue_many(own->queue, own->items, count, own->stored), "enqueue_many");
}

static void read_all(bench *b)
{
    ours_state *own = b->state;

    for (size_t i = 0; i < own->count; i++) {
        size_t len = 0;
        const void *payload = cwist_job_payload(own->jobs[i], &len);
        bench_read(b, payload, len);
    }
}

static size_t take_one(bench *b)
{
    ours_state *own = b->state;

    check(cwist_job_queue_claim(own->queue, PATIENCE_MS, own->jobs), "claim");
    own->count = 1;
    read_all(b);
    check(cwist_job_queue_ack(own->queue, own->jobs[0]), "ack");
    return 1;
}

static size_t take(bench *b, size_t most)
{
    ours_state *own = b->state;

    if (b->one_at_a_time) {
        return take_one(b);
    }
    check(cwist_job_queue_claim_many(own->queue, most, PATIENCE_MS, own->jobs, &own->count),
          "claim_many");
    read_all(b);
    check(cwist_job_queue_ack_many(own->queue, own->jobs, own->count, NULL), "ack_many");
    return own->count;
}

static void check_codes(ours_state *own)
{
    for (size_t i = 0; i < own->count; i++) {
        if (own->codes[i] != CWIST_SUCCESS) {
            bench_die("ack_and_claim", cwist_job_error_name(own->codes[i]));
        }
    }
}

static size_t take_next(bench *b, size_t most)
{
    ours_state *own = b->state;
    size_t count = 0;

    if (most == 0) {
        check(cwist_job_queue_ack_many(own->queue, own->jobs, own->count, NULL), "ack_many");
        return 0;
    }
    check(cwist_job_queue_ack_and_claim(own->queue, own->jobs, own->count, own->codes, most,
                                        PATIENCE_MS, own->next, &count),
          "ack_and_claim");
    check_codes(own);
    for (size_t i = 0; i < count; i++) {
        own->jobs[i] = own->next[i];
    }
    own->count = count;
    read_all(b);
    return count;
}

static uint64_t wait_for_job(bench *b)
{
    ours_state *own = b->state;

    check(cwist_job_queue_claim(own->queue, UINT64_MAX, own->jobs), "claim");
    return bench_now();
}

static uint64_t finish(bench *b)
{
    ours_state *own = b->state;
    size_t len = 0;
    const void *payload = cwist_job_payload(own->jobs[0], &len);
    uint64_t stamp = bench_stamp(payload, len);

    check(cwist_job_queue_ack(own->queue, own->jobs[0]), "ack");
    return stamp;
}

int main(int argc, char **argv)
{
    static const side ours = {open_ours, close_ours,   enqueue, enqueue_many, take,
                              take_next, wait_for_job, finish,  NULL};

    return bench_main(argc, argv, &ours);
}
