/* The life of a job, the same on both engines (SPEC rules 1 to 6 and 12 to 14). */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

#define SHORT_MS 400 /* a visibility timeout that a test can wait for */

static void enqueue(cwist_job_queue_t *queue, const char *payload)
{
    CHECK_OK(cwist_job_queue_enqueue(queue, payload, strlen(payload), NULL));
}

static void an_acked_job_is_gone(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    CHECK_OK(cwist_job_queue_enqueue(queue, "hello", 5, "greeting"));
    cwist_job_t *job = harness_claim(queue);
    harness_payload_is(job, "hello");
    CHECK_STR("greeting", cwist_job_type(job));
    CHECK_INT(1, cwist_job_attempts(job));
    CHECK(cwist_job_id(job)[0] != '\0');
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
    harness_close(queue);
}

static void jobs_enqueued_before_any_worker_arrive_in_order(void)
{
    char text[16];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    for (int i = 0; i < 20; i++) {
        (void)snprintf(text, sizeof text, "job %d", i);
        enqueue(queue, text);
    }
    for (int i = 0; i < 20; i++) {
        (void)snprintf(text, sizeof text, "job %d", i);
        cwist_job_t *job = harness_claim(queue);
        harness_payload_is(job, text);
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    harness_no_job(queue);
    harness_close(queue);
}

static void a_missing_and_an_empty_type_are_none(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    CHECK_OK(cwist_job_queue_enqueue(queue, "a", 1, NULL));
    CHECK_OK(cwist_job_queue_enqueue(queue, "b", 1, ""));
    for (int i = 0; i < 2; i++) {
        cwist_job_t *job = harness_claim(queue);
        CHECK_STR(NULL, cwist_job_type(job));
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    harness_close(queue);
}

/* P01, P02: every byte value, and sizes around the usual borders. */
static void payloads_are_byte_exact(void)
{
    static const size_t sizes[] = {0, 1, 255, 4095, 4096, 65535, 65536, 1024 * 1024 - 20480};
    size_t most = sizes[sizeof sizes / sizeof *sizes - 1];
    unsigned char *bytes = malloc(most);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < most; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    }
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t len = 1;
        CHECK_OK(cwist_job_queue_enqueue(queue, bytes, sizes[i], "bytes"));
        cwist_job_t *job = harness_claim(queue);
        CHECK_OK(cwist_job_queue_nack(queue, job));
        job = harness_claim(queue);
        const void *payload = cwist_job_payload(job, &len);
        CHECK_INT(sizes[i], len);
        CHECK(memcmp(payload, bytes, len) == 0);
        CHECK_STR("bytes", cwist_job_type(job));
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    free(bytes);
    harness_close(queue);
}

static void the_id_stays_through_all_deliveries(void)
{
    char id[CWIST_JOB_ID_SIZE];
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS, .max_retries = 9});
    CHECK_OK(cwist_job_queue_enqueue_id(queue, "x", 1, NULL, id));

    cwist_job_t *job = harness_claim(queue);
    CHECK_STR(id, cwist_job_id(job));
    CHECK_OK(cwist_job_queue_nack(queue, job));

    job = harness_claim(queue);
    CHECK_STR(id, cwist_job_id(job));
    CHECK_INT(2, cwist_job_attempts(job));
    CHECK_OK(cwist_job_queue_release(queue, job));

    job = harness_claim(queue);
    CHECK_STR(id, cwist_job_id(job));
    CHECK_INT(2, cwist_job_attempts(job)); /* a release spends no attempt */
    cwist_job_destroy(job);

    job = harness_claim(queue); /* waits for the lease to end */
    CHECK_STR(id, cwist_job_id(job));
    CHECK_INT(3, cwist_job_attempts(job));
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_no_job(queue);
    harness_close(queue);
}

/* S14: the retry delay is kept, and does not depend on the lease. */
static void a_nacked_job_waits_for_its_retry_delay(void)
{
    cwist_job_queue_t *queue = harness_open(
        (cwist_job_queue_opts_t){.visibility_timeout_ms = 60000, .retry_delay_ms = 700});
    enqueue(queue, "later");
    CHECK_OK(cwist_job_queue_nack(queue, harness_claim(queue)));
    uint64_t start = harness_now_ms();
    harness_no_job(queue);
    cwist_job_t *job = harness_claim(queue);
    uint64_t waited = harness_now_ms() - start;
    CHECK(waited >= 650 && waited < 1500);
    CHECK_INT(2, cwist_job_attempts(job));
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_close(queue);
}

static void the_last_nack_moves_the_job_to_the_dead_letters(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 2});
    enqueue(queue, "poison");
    CHECK_OK(cwist_job_queue_nack(queue, harness_claim(queue)));
    CHECK_INT(0, harness_dead_count(queue));
    CHECK_OK(cwist_job_queue_nack_reason(queue, harness_claim(queue), "no such user"));
    CHECK_INT(1, harness_dead_count(queue)); /* at that nack, not at a later claim */
    harness_no_job(queue);
    harness_close(queue);
}

static void a_single_allowed_delivery_dies_at_its_first_nack(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 1});
    enqueue(queue, "once");
    CHECK_OK(cwist_job_queue_nack(queue, harness_claim(queue)));
    CHECK_INT(1, harness_dead_count(queue));
    harness_close(queue);
}

/* X01, L08: the last delivery may end by silence too. */
static void dropped_handles_end_in_the_dead_letters(void)
{
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS, .max_retries = 2});
    enqueue(queue, "crasher");
    for (int i = 1; i <= 2; i++) {
        cwist_job_t *job = harness_claim(queue);
        CHECK_INT(i, cwist_job_attempts(job));
        cwist_job_destroy(job);
    }
    cwist_job_t *job = NULL;
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(queue, 2 * SHORT_MS, &job));
    CHECK_INT(1, harness_dead_count(queue));
    harness_close(queue);
}

/* D04: calls of a delivery that was given away change nothing and say so. */
static void a_late_call_reports_a_lost_lease(void)
{
    cwist_job_queue_t *queue = harness_open(
        (cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS, .max_retries = 99});
    cwist_error_t (*const calls[])(cwist_job_queue_t *, cwist_job_t *) = {
        cwist_job_queue_ack, cwist_job_queue_nack, cwist_job_queue_release};

    enqueue(queue, "slow");
    for (size_t i = 0; i < 3; i++) {
        cwist_job_t *late = harness_claim(queue);
        cwist_job_t *fresh = harness_claim(queue); /* comes when the first lease ends */
        CHECK_CODE(CWIST_ERROR_LEASE_LOST, cwist_job_queue_extend(queue, late));
        CHECK_CODE(CWIST_ERROR_LEASE_LOST, calls[i](queue, late));
        CHECK_OK(cwist_job_queue_extend(queue, fresh)); /* still its owner's */
        CHECK_OK(cwist_job_queue_release(queue, fresh));
    }
    cwist_job_t *job = harness_claim(queue);
    CHECK_INT(4, cwist_job_attempts(job));
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
    harness_close(queue);
}

/* D02: extend keeps the job with its worker. */
static void an_extended_job_stays_with_its_worker(void)
{
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS});
    cwist_job_t *none = NULL;
    enqueue(queue, "long");
    cwist_job_t *job = harness_claim(queue);
    for (int i = 0; i < 6; i++) { /* claims in between look for lapsed leases */
        CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(queue, SHORT_MS / 3, &none));
        CHECK_OK(cwist_job_queue_extend(queue, job));
    }
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_close(queue);
}

/* A sorted set of payloads would merge these. */
static void equal_payloads_nacked_together_all_come_back(void)
{
    enum { JOBS = 10 };
    cwist_job_t *jobs[JOBS];
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.retry_delay_ms = 200, .max_retries = 3});
    for (int i = 0; i < JOBS; i++) {
        enqueue(queue, "same");
    }
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = harness_claim(queue);
    }
    for (int i = 0; i < JOBS; i++) {
        CHECK_OK(cwist_job_queue_nack(queue, jobs[i]));
    }
    for (int i = 0; i < JOBS; i++) {
        cwist_job_t *job = harness_claim(queue);
        harness_payload_is(job, "same");
        CHECK_INT(2, cwist_job_attempts(job));
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    harness_no_job(queue);
    harness_close(queue);
}

/* Rule 2: neither new nor returned jobs starve the other kind. */
static void a_lapsed_job_is_claimed_before_much_later_ones(void)
{
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS});
    enqueue(queue, "first");
    cwist_job_destroy(harness_claim(queue));
    harness_pass_ms(SHORT_MS + 300); /* nobody claims meanwhile */
    enqueue(queue, "second");
    cwist_job_t *job = harness_claim(queue);
    harness_payload_is(job, "first");
    CHECK_OK(cwist_job_queue_ack(queue, job));
    job = harness_claim(queue);
    harness_payload_is(job, "second");
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_close(queue);
}

/* L10: a queue that never existed has no dead letters and no jobs. */
static void a_queue_that_was_never_used_is_empty(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    CHECK_INT(0, harness_dead_count(queue));
    harness_no_job(queue);
    harness_close(queue);
}

/* N03: names that could meet. */
static void queues_do_not_see_each_other(void)
{
    static const char *const suffixes[] = {"", ":dead", ":s", ".dead", "=2Edead", "-DEAD"};
    char base[80];
    char name[128];
    cwist_job_queue_t *queues[6];

    cwist_job_conn_t *conn = harness_connect();
    (void)snprintf(base, sizeof base, "%s", harness_queue_name());
    for (int i = 0; i < 6; i++) {
        cwist_job_queue_opts_t opts = {.name = name, .max_retries = 1};
        (void)snprintf(name, sizeof name, "%s%s", base, i == 4 ? "_2Edead" : suffixes[i]);
        CHECK_OK(cwist_job_queue_open(&queues[i], conn, &opts));
        enqueue(queues[i], name);
    }
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "%s%s", base, i == 4 ? "_2Edead" : suffixes[i]);
        cwist_job_t *job = harness_claim(queues[i]);
        harness_payload_is(job, name);
        CHECK_OK(cwist_job_queue_nack(queues[i], job));
        harness_no_job(queues[i]);
        CHECK_INT(1, harness_dead_count(queues[i]));
    }
    for (int i = 0; i < 6; i++) {
        cwist_job_queue_destroy(queues[i]);
    }
    cwist_job_conn_close(conn);
}

TEST_MAIN({"an_acked_job_is_gone", an_acked_job_is_gone},
          {"jobs_enqueued_before_any_worker_arrive_in_order",
           jobs_enqueued_before_any_worker_arrive_in_order},
          {"a_missing_and_an_empty_type_are_none", a_missing_and_an_empty_type_are_none},
          {"payloads_are_byte_exact", payloads_are_byte_exact},
          {"the_id_stays_through_all_deliveries", the_id_stays_through_all_deliveries},
          {"a_nacked_job_waits_for_its_retry_delay", a_nacked_job_waits_for_its_retry_delay},
          {"the_last_nack_moves_the_job_to_the_dead_letters",
           the_last_nack_moves_the_job_to_the_dead_letters},
          {"a_single_allowed_delivery_dies_at_its_first_nack",
           a_single_allowed_delivery_dies_at_its_first_nack},
          {"dropped_handles_end_in_the_dead_letters", dropped_handles_end_in_the_dead_letters},
          {"a_late_call_reports_a_lost_lease", a_late_call_reports_a_lost_lease},
          {"an_extended_job_stays_with_its_worker", an_extended_job_stays_with_its_worker},
          {"equal_payloads_nacked_together_all_come_back",
           equal_payloads_nacked_together_all_come_back},
          {"a_lapsed_job_is_claimed_before_much_later_ones",
           a_lapsed_job_is_claimed_before_much_later_ones},
          {"a_queue_that_was_never_used_is_empty", a_queue_that_was_never_used_is_empty},
          {"queues_do_not_see_each_other", queues_do_not_see_each_other})
