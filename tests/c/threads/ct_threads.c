/* F06: 16 threads on one queue, mixed operations: every thread gets its own answers. */
#include <stdatomic.h>
#include <stdio.h>

#include "harness.h"

enum { THREADS = 16, PER_THREAD = 60 };

static cwist_job_queue_t *queue;
static atomic_int done;
static atomic_uchar seen[THREADS][PER_THREAD];
static atomic_uchar released[THREADS][PER_THREAD];

static void produce(int thread)
{
    char ids[PER_THREAD][CWIST_JOB_ID_SIZE];
    for (int i = 0; i < PER_THREAD; i++) {
        char payload[32];
        uint64_t count = 1;
        (void)snprintf(payload, sizeof payload, "%d/%d", thread, i);
        CHECK_OK(cwist_job_queue_enqueue_id(queue, payload, strlen(payload), payload, ids[i]));
        for (int before = 0; before < i; before++) {
            CHECK(strcmp(ids[before], ids[i]) != 0);
        }
        CHECK_OK(cwist_job_queue_dead_count(queue, &count));
        CHECK_INT(0, count);
    }
}

/* Acks every job; some are nacked or released once before. */
static void consume(void)
{
    while (atomic_load(&done) < THREADS / 2 * PER_THREAD) {
        cwist_job_t *job = NULL;
        cwist_error_t error = cwist_job_queue_claim(queue, 200, &job);
        if (!cwist_error_is_ok(&error)) {
            CHECK_CODE(CWIST_ERROR_TIMEOUT, error);
            continue;
        }
        size_t len = 0;
        int owner = -1;
        int number = -1;
        char text[32] = "";
        const void *payload = cwist_job_payload(job, &len);
        CHECK(len < sizeof text);
        memcpy(text, payload, len);
        CHECK_STR(text, cwist_job_type(job));
        CHECK(sscanf(text, "%d/%d", &owner, &number) == 2);
        if (number % 7 == 0 && cwist_job_attempts(job) == 1) {
            CHECK_OK(cwist_job_queue_extend(queue, job));
            CHECK_OK(cwist_job_queue_nack(queue, job));
        } else if (number % 5 == 0 && atomic_exchange(&released[owner][number], 1) == 0) {
            CHECK_OK(cwist_job_queue_release(queue, job));
        } else {
            CHECK_OK(cwist_job_queue_ack(queue, job));
            atomic_fetch_add(&seen[owner][number], 1);
            atomic_fetch_add(&done, 1);
        }
    }
}

static void work(void *argument)
{
    int thread = *(int *)argument;
    if (thread < THREADS / 2) {
        produce(thread);
    } else {
        consume();
    }
}

static void threads_share_a_queue(void)
{
    harness_thread *threads[THREADS];
    int numbers[THREADS];
    cwist_job_conn_t *conn = harness_connect();

    queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        threads[i] = harness_thread_start(work, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        harness_thread_join(threads[i]);
    }
    for (int owner = 0; owner < THREADS / 2; owner++) {
        for (int number = 0; number < PER_THREAD; number++) {
            CHECK_INT(1, atomic_load(&seen[owner][number]));
        }
    }
    harness_no_job(queue);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    CHECK_INT(0, cwist_job_live_handles());
}

TEST_MAIN({"threads_share_a_queue", threads_share_a_queue})
