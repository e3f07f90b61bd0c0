/* A queue as a whole: statistics, purge, pause. */
#include "harness.h"

static void enqueue(cwist_job_queue_t *queue, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(cwist_job_queue_enqueue(queue, "work", 4, NULL));
    }
}

static void enqueue_later(cwist_job_queue_t *queue, uint64_t delay_ms)
{
    cwist_job_item_t item = {.payload = "later", .len = 5, .delay_ms = delay_ms};
    CHECK_OK(cwist_job_queue_enqueue_item(queue, &item, NULL));
}

static cwist_job_stats_t stats_of(cwist_job_queue_t *queue)
{
    cwist_job_stats_t stats = {.struct_size = sizeof stats};

    CHECK_OK(cwist_job_queue_stats(queue, &stats));
    CHECK_INT(sizeof stats, stats.struct_size);
    return stats;
}

/* ---- statistics ---- */

static void an_unused_queue_has_no_statistics(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_stats_t stats = stats_of(queue);

    CHECK_INT(0, stats.ready + stats.claimed + stats.delayed + stats.dead);
    CHECK_INT(0, stats.oldest_ready_ms + stats.consumers);
    CHECK(!stats.paused);
    harness_close(queue);
}

static void statistics_count_jobs_in_each_state(void)
{
    if (!harness_has_delays()) {
        return;
    }
    cwist_job_nack_opts_t reject = {.dead = true};
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    enqueue(queue, 6);
    enqueue_later(queue, 3600000);
    CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &reject));
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    cwist_job_t *one = harness_claim(queue);
    cwist_job_t *other = harness_claim(queue);
    harness_pass_ms(300);
    cwist_job_stats_t stats = stats_of(queue);
    CHECK_INT(2, stats.ready);
    CHECK_INT(2, stats.claimed);
    CHECK_INT(1, stats.delayed);
    CHECK_INT(1, stats.dead);
    CHECK(stats.oldest_ready_ms >= 250 && stats.oldest_ready_ms < 60000);
    CHECK(stats.consumers >= 1);
    CHECK(!stats.paused);
    CHECK_OK(cwist_job_queue_ack(queue, one));
    CHECK_OK(cwist_job_queue_release(queue, other));
    stats = stats_of(queue);
    CHECK_INT(3, stats.ready);
    CHECK_INT(0, stats.claimed);
    harness_close(queue);
}

static void a_handle_counts_what_it_did(void)
{
    cwist_job_nack_opts_t reject = {.dead = true};
    cwist_job_item_t keyed = {.payload = "k", .len = 1, .dedupe_key = "k"};
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 2});

    enqueue(queue, 4);
    CHECK_OK(cwist_job_queue_enqueue_item(queue, &keyed, NULL));
    CHECK_OK(cwist_job_queue_enqueue_item(queue, &keyed, NULL)); /* a duplicate */
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &reject));
    CHECK_OK(cwist_job_queue_release(queue, harness_claim(queue)));
    cwist_job_stats_t stats = stats_of(queue);
    CHECK_INT(5, stats.enqueued);
    CHECK_INT(3, stats.delivered);
    CHECK_INT(1, stats.acked);
    CHECK_INT(1, stats.nacked);
    CHECK_INT(1, stats.released);
    CHECK_INT(1, stats.buried);
    cwist_job_t *job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_ack(queue, job));
    CHECK_CODE(CWIST_ERROR_CLOSED,
               cwist_job_queue_ack(queue, job)); /* what failed does not count */
    stats = stats_of(queue);
    CHECK_INT(4, stats.delivered);
    CHECK_INT(2, stats.acked);
    harness_close(queue);
}

/* A program of an older version asks for less. */
static void statistics_have_a_size(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_stats_t stats;

    memset(&stats, 0xEE, sizeof stats);
    stats.struct_size = offsetof(cwist_job_stats_t, claimed);
    enqueue(queue, 1);
    CHECK_OK(cwist_job_queue_stats(queue, &stats));
    CHECK_INT(1, stats.ready);
    CHECK(stats.claimed == UINT64_C(0xEEEEEEEEEEEEEEEE));
    stats.struct_size = 1;
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_stats(queue, &stats));
    CHECK_TEXT("struct_size is 1");
    stats.struct_size = sizeof stats + 1;
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_stats(queue, &stats));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_stats(queue, NULL));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_stats(NULL, &stats));
    harness_close(queue);
}

/* ---- purge ---- */

static void a_purge_takes_ready_and_delayed_jobs_only(void)
{
    if (!harness_has_delays()) {
        return;
    }
    uint64_t count = 9;
    cwist_job_nack_opts_t reject = {.dead = true};
    cwist_job_item_t keyed = {.payload = "k", .len = 1, .dedupe_key = "k"};
    cwist_job_stored_t stored;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    CHECK_OK(cwist_job_queue_purge(queue, &count)); /* there is nothing */
    CHECK_INT(0, count);
    enqueue(queue, 7);
    CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &reject));
    cwist_job_t *claimed = harness_claim(queue);
    CHECK_OK(cwist_job_queue_enqueue_item(queue, &keyed, NULL));
    enqueue_later(queue, 3600000);
    CHECK_OK(cwist_job_queue_purge(queue, &count));
    CHECK_INT(7, count);
    harness_no_job(queue);
    CHECK_INT(1, harness_dead_count(queue));
    CHECK_OK(cwist_job_queue_enqueue_item(queue, &keyed, &stored));
    CHECK(!stored.duplicate); /* the key is free */
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    CHECK_OK(cwist_job_queue_ack(queue, claimed));
    CHECK_OK(cwist_job_queue_purge(queue, NULL));
    harness_close(queue);
}

static void a_purge_takes_many_jobs(void)
{
    enum { JOBS = 3000 };
    static cwist_job_item_t items[CWIST_JOB_BATCH_MAX];
    uint64_t count = 0;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    for (size_t i = 0; i < CWIST_JOB_BATCH_MAX; i++) {
        items[i] = (cwist_job_item_t){.payload = "work", .len = 4};
    }
    for (size_t i = 0; i < JOBS / CWIST_JOB_BATCH_MAX; i++) {
        CHECK_OK(cwist_job_queue_enqueue_many(queue, items, CWIST_JOB_BATCH_MAX, NULL));
    }
    CHECK_OK(cwist_job_queue_purge(queue, &count));
    CHECK_INT(JOBS, count);
    harness_no_job(queue);
    enqueue(queue, 1);
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    harness_close(queue);
}

/* ---- pause ---- */

static void a_paused_queue_brings_no_jobs(void)
{
    if (!harness_has_delays()) {
        return;
    }
    cwist_job_t *job = NULL;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    enqueue(queue, 2);
    cwist_job_t *claimed = harness_claim(queue);
    CHECK_OK(cwist_job_queue_pause(queue));
    CHECK_OK(cwist_job_queue_pause(queue)); /* twice is fine */
    CHECK(stats_of(queue).paused);
    harness_pass_ms(1000); /* it holds within a second */
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(queue, 0, &job));
    uint64_t began = harness_now_ms();
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(queue, 700, &job));
    CHECK(harness_now_ms() - began >= 690);
    enqueue(queue, 1); /* the rest goes on */
    CHECK_OK(cwist_job_queue_nack(queue, claimed));
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(queue, 300, &job));
    CHECK_OK(cwist_job_queue_resume(queue));
    CHECK_OK(cwist_job_queue_resume(queue));
    CHECK(!stats_of(queue).paused);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    }
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
    harness_close(queue);
}

typedef struct waiting {
    cwist_job_queue_t *queue;
    cwist_job_t *job;
} waiting;

static void wait_for_a_job(void *argument)
{
    waiting *own = argument;

    own->job = harness_claim(own->queue);
}

/* A claim that waits already stops too, and goes on when the queue does. */
static void a_pause_holds_for_claims_that_wait(void)
{
    if (!harness_has_delays()) {
        return;
    }
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    waiting own = {.queue = queue};

    enqueue(queue, 1);
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue))); /* all is set up */
    harness_thread *thread = harness_thread_start(wait_for_a_job, &own);
    harness_pass_ms(200);
    CHECK_OK(cwist_job_queue_pause(queue));
    harness_pass_ms(1000);
    enqueue(queue, 1);
    harness_pass_ms(500);
    CHECK_INT(1, stats_of(queue).ready);
    CHECK_INT(0, stats_of(queue).claimed);
    CHECK_OK(cwist_job_queue_resume(queue));
    harness_thread_join(thread);
    CHECK_INT(1, cwist_job_attempts(own.job));
    CHECK_OK(cwist_job_queue_ack(queue, own.job));
    harness_close(queue);
}

TEST_MAIN({"an_unused_queue_has_no_statistics", an_unused_queue_has_no_statistics},
          {"statistics_count_jobs_in_each_state", statistics_count_jobs_in_each_state},
          {"a_handle_counts_what_it_did", a_handle_counts_what_it_did},
          {"statistics_have_a_size", statistics_have_a_size},
          {"a_purge_takes_ready_and_delayed_jobs_only", a_purge_takes_ready_and_delayed_jobs_only},
          {"a_purge_takes_many_jobs", a_purge_takes_many_jobs},
          {"a_paused_queue_brings_no_jobs", a_paused_queue_brings_no_jobs},
          {"a_pause_holds_for_claims_that_wait", a_pause_holds_for_claims_that_wait})
