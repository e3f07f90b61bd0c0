/* Leases that the library keeps: renew and auto_renew (SPEC rules 3 and 7). */
#include <stdio.h>

#include "harness.h"

#define SHORT_MS 300 /* a visibility timeout that a test can outlast */

static char opened[64]; /* the name of the queue under test */

static cwist_job_queue_opts_t short_leases(void)
{
    (void)snprintf(opened, sizeof opened, "%s", harness_queue_name());
    return (cwist_job_queue_opts_t){.name = opened, .visibility_timeout_ms = SHORT_MS};
}

static void enqueue(cwist_job_queue_t *queue, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(cwist_job_queue_enqueue(queue, "work", 4, NULL));
    }
}

/* Another worker looks for a job for so long, and gets none. */
static void nobody_else_gets_one(unsigned ms)
{
    cwist_job_t *job = NULL;
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *other = harness_queue(
        conn, (cwist_job_queue_opts_t){.name = opened, .visibility_timeout_ms = SHORT_MS});

    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(other, ms, &job));
    cwist_job_queue_destroy(other);
    cwist_job_conn_close(conn);
}

/* Waits until another worker gets a job, and acks it. It was delivered twice. */
static void somebody_else_gets_one(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *other = harness_queue(
        conn, (cwist_job_queue_opts_t){.name = opened, .visibility_timeout_ms = SHORT_MS});
    cwist_job_t *job = harness_claim(other);

    CHECK_INT(2, cwist_job_attempts(job));
    CHECK_OK(cwist_job_queue_ack(other, job));
    cwist_job_queue_destroy(other);
    cwist_job_conn_close(conn);
}

static void a_handler_of_ten_leases_runs_once(void)
{
    cwist_job_queue_t *queue = harness_open(short_leases());

    enqueue(queue, 1);
    cwist_job_t *job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_renew(queue, job));
    CHECK_OK(cwist_job_queue_renew(queue, job)); /* twice is fine */
    nobody_else_gets_one(10 * SHORT_MS);
    CHECK(!cwist_job_lease_lost(job));
    CHECK(cwist_job_lease_remaining_ms(job) > 0);
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
    harness_close(queue);
}

static void auto_renew_keeps_every_claimed_job(void)
{
    enum { JOBS = 300 }; /* more than one piece */
    static cwist_job_t *jobs[JOBS];
    static int codes[JOBS];
    size_t have = 0;
    cwist_job_queue_t *queue =
        harness_open_ext(short_leases(), (cwist_job_queue_ext_opts_t){.auto_renew = true});

    enqueue(queue, JOBS);
    while (have < JOBS) {
        size_t got = 0;
        CHECK_OK(cwist_job_queue_claim_many(queue, JOBS - have, 5000, jobs + have, &got));
        have += got;
    }
    nobody_else_gets_one(5 * SHORT_MS);
    for (size_t i = 0; i < JOBS; i++) {
        CHECK(!cwist_job_lease_lost(jobs[i]));
    }
    CHECK_OK(cwist_job_queue_ack_many(queue, jobs, JOBS, codes));
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
    harness_close(queue);
}

static void without_renewal_the_lease_is_lost(void)
{
    cwist_job_queue_t *queue = harness_open(short_leases());

    enqueue(queue, 1);
    cwist_job_t *job = harness_claim(queue);
    CHECK(!cwist_job_lease_lost(job));
    somebody_else_gets_one();
    CHECK(cwist_job_lease_lost(job));
    CHECK_INT(0, cwist_job_lease_remaining_ms(job));
    CHECK_CODE(CWIST_ERROR_LEASE_LOST, cwist_job_queue_renew(queue, job));
    CHECK_TEXT(cwist_job_id(job));
    CHECK_CODE(CWIST_ERROR_LEASE_LOST, cwist_job_queue_extend(queue, job));
    CHECK_CODE(CWIST_ERROR_LEASE_LOST, cwist_job_queue_ack(queue, job));
    CHECK(!cwist_job_lease_lost(job));
    harness_close(queue);
}

/* A job that is dropped, or whose queue is, comes back to others. */
static void a_dropped_job_is_kept_no_more(void)
{
    cwist_job_queue_t *queue = harness_open(short_leases());
    cwist_job_t *job = NULL;

    enqueue(queue, 2);
    job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_renew(queue, job));
    cwist_job_destroy(job);
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_renew(queue, job));
    job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_renew(queue, job));
    cwist_job_queue_destroy(queue);
    somebody_else_gets_one();
    somebody_else_gets_one();
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_renew(queue, job));
    cwist_job_destroy(job);
    harness_close(queue);
}

/* What a handler does at its end holds, also while its lease is being extended. */
static void a_nack_holds_its_delay_beside_renewals(void)
{
    enum { ROUNDS = 20 };
    cwist_job_queue_opts_t opts = short_leases();
    opts.visibility_timeout_ms = 60; /* an extension every 20 ms */
    opts.max_retries = 2 * ROUNDS;
    cwist_job_queue_t *queue =
        harness_open_ext(opts, (cwist_job_queue_ext_opts_t){.auto_renew = true});

    enqueue(queue, 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        cwist_job_nack_opts_t later = {.delayed = true, .delay_ms = 150};
        cwist_job_t *job = harness_claim(queue);
        harness_pass_ms(15 + round);
        uint64_t began = harness_now_ms();
        cwist_error_t error = cwist_job_queue_nack_with(queue, job, &later);
        if (cwist_job_error_code(&error) == CWIST_SUCCESS) {
            job = harness_claim(queue);
            CHECK(harness_now_ms() - began >= 150);
            CHECK_OK(cwist_job_queue_release(queue, job));
        }
    }
    harness_close(queue);
}

static void a_job_of_another_queue_is_refused(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *other = harness_queue(conn, (cwist_job_queue_opts_t){0});
    cwist_job_queue_t *queue = harness_open(short_leases());

    enqueue(queue, 1);
    cwist_job_t *job = harness_claim(queue);
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_renew(other, job));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_renew(queue, NULL));
    CHECK_OK(cwist_job_queue_ack(queue, job));
    cwist_job_queue_destroy(other);
    cwist_job_conn_close(conn);
    harness_close(queue);
}

/* ---- many threads ---- */

static void work_a_while(void *argument)
{
    cwist_job_queue_t *queue = argument;

    for (int i = 0; i < 20; i++) {
        cwist_job_t *job = harness_claim(queue);
        if (i % 4 == 0) {
            harness_pass_ms(50);
        }
        if (i % 5 == 4) {
            cwist_job_destroy(job); /* it comes back */
            enqueue(queue, 1);
        } else {
            (void)cwist_job_queue_ack(queue, job);
        }
    }
}

/* Jobs come into the list and leave it while the thread extends them. */
static void threads_settle_while_leases_are_extended(void)
{
    enum { THREADS = 4 };
    harness_thread *threads[THREADS];
    cwist_job_queue_opts_t opts = short_leases();
    opts.visibility_timeout_ms = 100;
    cwist_job_queue_t *queue =
        harness_open_ext(opts, (cwist_job_queue_ext_opts_t){.auto_renew = true});

    enqueue(queue, 20 * THREADS);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = harness_thread_start(work_a_while, queue);
    }
    for (int i = 0; i < THREADS; i++) {
        harness_thread_join(threads[i]);
    }
    harness_close(queue);
}

TEST_MAIN({"a_handler_of_ten_leases_runs_once", a_handler_of_ten_leases_runs_once},
          {"auto_renew_keeps_every_claimed_job", auto_renew_keeps_every_claimed_job},
          {"without_renewal_the_lease_is_lost", without_renewal_the_lease_is_lost},
          {"a_dropped_job_is_kept_no_more", a_dropped_job_is_kept_no_more},
          {"a_nack_holds_its_delay_beside_renewals", a_nack_holds_its_delay_beside_renewals},
          {"a_job_of_another_queue_is_refused", a_job_of_another_queue_is_refused},
          {"threads_settle_while_leases_are_extended", threads_settle_while_leases_are_extended})
