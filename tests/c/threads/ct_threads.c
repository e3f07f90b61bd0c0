/*
 * F06: 16 threads on one queue, mixed operations, one job or many at a time: every thread gets its
 * own answers.
 */
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
        cwist_error_t error = cwist_job_queue_claim(queue, 2000, &job);
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

/* ---- batches ---- */

enum { LARGEST = 13 };

/* Stores its jobs in batches of all sizes up to LARGEST. */
static void produce_many(int thread)
{
    for (int first = 0, size = 1; first < PER_THREAD; first += size, size = size % LARGEST + 1) {
        char payloads[LARGEST][32];
        cwist_job_item_t items[LARGEST];
        cwist_job_stored_t stored[LARGEST];
        int count = size < PER_THREAD - first ? size : PER_THREAD - first;
        for (int i = 0; i < count; i++) {
            (void)snprintf(payloads[i], sizeof payloads[i], "%d/%d", thread, first + i);
            items[i] = (cwist_job_item_t){
                .payload = payloads[i], .len = strlen(payloads[i]), .type = payloads[i]};
        }
        CHECK_OK(cwist_job_queue_enqueue_many(queue, items, (size_t)count, stored));
        for (int i = 0; i < count; i++) {
            CHECK_INT(CWIST_SUCCESS, stored[i].code);
            CHECK(i == 0 || strcmp(stored[i].id, stored[i - 1].id) != 0);
        }
    }
}

/* Splits a batch into those to nack, release and ack, and notes the last. */
static void settle_many(cwist_job_t *const *jobs, size_t count)
{
    cwist_job_t *parts[3][LARGEST];
    size_t sizes[3] = {0, 0, 0};
    int codes[LARGEST];

    for (size_t i = 0; i < count; i++) {
        int owner = -1;
        int number = -1;
        size_t part = 2;
        CHECK(cwist_job_type(jobs[i]) != NULL);
        CHECK(sscanf(cwist_job_type(jobs[i]), "%d/%d", &owner, &number) == 2);
        harness_payload_is(jobs[i], cwist_job_type(jobs[i]));
        CHECK(cwist_job_lease_remaining_ms(jobs[i]) > 0);
        if (number % 7 == 0 && cwist_job_attempts(jobs[i]) == 1) {
            part = 0;
        } else if (number % 5 == 0 && atomic_exchange(&released[owner][number], 1) == 0) {
            part = 1;
        } else {
            atomic_fetch_add(&seen[owner][number], 1);
        }
        parts[part][sizes[part]++] = jobs[i];
    }
    if (sizes[0] != 0) {
        CHECK_OK(cwist_job_queue_nack_many(queue, parts[0], sizes[0], codes));
    }
    if (sizes[1] != 0) {
        CHECK_OK(cwist_job_queue_release_many(queue, parts[1], sizes[1], NULL));
    }
    if (sizes[2] != 0) {
        CHECK_OK(cwist_job_queue_ack_many(queue, parts[2], sizes[2], codes));
        atomic_fetch_add(&done, (int)sizes[2]);
    }
}

/* By turns with batches of its own and with single acks on the way to the next claim. */
static void consume_many(size_t most)
{
    while (atomic_load(&done) < THREADS / 2 * PER_THREAD) {
        cwist_job_t *jobs[LARGEST];
        size_t count = 0;
        cwist_error_t error = cwist_job_queue_claim_many(queue, most, 200, jobs, &count);
        if (cwist_error_is_ok(&error) && cwist_job_attempts(jobs[count - 1]) > 1) {
            int code = CWIST_FAILURE;
            size_t next = 0;
            int owner = -1;
            int number = -1;
            count--;
            CHECK(sscanf(cwist_job_type(jobs[count]), "%d/%d", &owner, &number) == 2);
            error = cwist_job_queue_ack_and_claim(queue, &jobs[count], 1, &code, most - count, 0,
                                                  &jobs[count], &next);
            CHECK_INT(CWIST_SUCCESS, code);
            atomic_fetch_add(&seen[owner][number], 1);
            atomic_fetch_add(&done, 1);
            count += next;
        }
        if (!cwist_error_is_ok(&error)) {
            CHECK_CODE(CWIST_ERROR_TIMEOUT, error);
        }
        settle_many(jobs, count);
    }
}

static void work_many(void *argument)
{
    int thread = *(int *)argument;
    if (thread < THREADS / 2) {
        produce_many(thread);
    } else {
        consume_many((size_t)(thread - THREADS / 2) % LARGEST + 1);
    }
}

/* ---- the tests ---- */

static void run_threads(void (*run)(void *))
{
    harness_thread *threads[THREADS];
    int numbers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        threads[i] = harness_thread_start(run, &numbers[i]);
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
}

static void threads_share_a_queue(void)
{
    queue = harness_open((cwist_job_queue_opts_t){0});
    run_threads(work);
    harness_close(queue);
}

static void claim_in_vain(void *idle)
{
    cwist_job_t *jobs[LARGEST];
    size_t count = 0;
    CHECK_CODE(CWIST_ERROR_INTERRUPTED,
               cwist_job_queue_claim_many(idle, LARGEST, UINT64_MAX, jobs, &count));
    CHECK_INT(0, count);
}

/* R12: beside a claim that is blocked all the time, on the same connection. */
static void threads_share_a_queue_in_batches(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *idle = harness_queue(conn, (cwist_job_queue_opts_t){0});
    harness_thread *blocked = harness_thread_start(claim_in_vain, idle);

    queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    run_threads(work_many);
    CHECK_INT(0, harness_dead_count(queue));
    CHECK_OK(cwist_job_queue_interrupt(idle));
    harness_thread_join(blocked);
    cwist_job_queue_destroy(idle);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    CHECK_INT(0, cwist_job_live_handles());
}

/* ---- the first claim of all ---- */

enum { STARTERS = 4, ROUNDS = 60 };

static const char *new_names[ROUNDS];
static atomic_int arrived;

static void start_together(void *unused)
{
    cwist_job_conn_t *conn = harness_connect();

    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        cwist_job_queue_t *own =
            harness_queue(conn, (cwist_job_queue_opts_t){.name = new_names[round]});
        atomic_fetch_add(&arrived, 1);
        while (atomic_load(&arrived) < (round + 1) * STARTERS) {
        }
        harness_no_job(own);
        cwist_job_queue_destroy(own);
    }
    cwist_job_conn_close(conn);
}

/* All find that the queue does not exist, and make it. */
static void workers_start_together(void)
{
    harness_thread *threads[STARTERS];

    for (int round = 0; round < ROUNDS; round++) {
        new_names[round] = harness_queue_name();
    }
    for (int i = 0; i < STARTERS; i++) {
        threads[i] = harness_thread_start(start_together, NULL);
    }
    for (int i = 0; i < STARTERS; i++) {
        harness_thread_join(threads[i]);
    }
    CHECK_INT(0, cwist_job_live_handles());
}

TEST_MAIN({"workers_start_together", workers_start_together},
          {"threads_share_a_queue", threads_share_a_queue},
          {"threads_share_a_queue_in_batches", threads_share_a_queue_in_batches})
