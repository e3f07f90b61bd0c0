/* F01, F02, F03: handles in the wrong place, order or thread. */
#include "harness.h"

static void everything_after_destroy_says_closed(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    cwist_job_t *none = NULL;
    uint64_t count = 0;

    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    cwist_job_t *job = harness_claim(queue);
    cwist_job_queue_destroy(queue);
    cwist_job_queue_destroy(queue);
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_ack(queue, job));
    CHECK_TEXT("closed");
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_enqueue(queue, "x", 1, NULL));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_claim(queue, 0, &none));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_dead_count(queue, &count));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_interrupt(queue));
    CHECK(cwist_job_payload(job, NULL) == NULL); /* the ack consumed it all the same */
    CHECK(cwist_job_id(job) == NULL);
    CHECK_INT(0, cwist_job_attempts(job));
    cwist_job_destroy(job);
    cwist_job_conn_close(conn);
    cwist_job_conn_close(conn);
    CHECK_INT(0, cwist_job_live_handles());
}

static void a_job_is_settled_once(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});

    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    cwist_job_t *job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_ack(queue, job));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_ack(queue, job));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_nack(queue, job));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_extend(queue, job));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_ack(queue, NULL));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_ack(NULL, NULL));
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void a_job_belongs_to_the_handle_that_claimed_it(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    cwist_job_queue_t *other = harness_queue(conn, (cwist_job_queue_opts_t){0});

    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    cwist_job_t *job = harness_claim(queue);
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_extend(other, job));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_ack(other, job));
    CHECK_TEXT("another queue handle");
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_ack(queue, job));
    cwist_job_queue_destroy(other);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void the_connection_may_go_first(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    cwist_job_conn_close(conn);
    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    cwist_job_t *job = harness_claim(queue);
    harness_payload_is(job, "x");
    CHECK_OK(cwist_job_queue_ack(queue, job));
    cwist_job_queue_destroy(queue);
    CHECK_INT(0, cwist_job_live_handles());
}

static void a_queue_of_the_other_engine_is_refused(void)
{
    bool redis = strcmp(harness_engine(), "redis") == 0;
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_opts_t opts = {.name = "q"};
    CHECK((redis ? cwist_job_queue_create_nats((cwist_nats_t *)(void *)conn, &opts)
                 : cwist_job_queue_create_redis((cwist_redis_t *)(void *)conn, &opts)) == NULL);
    CHECK_TEXT("connection is to");
    CHECK(cwist_job_queue_create_redis(NULL, &opts) == NULL);
    cwist_job_conn_close(conn);
}

/* ---- blocked claims ---- */

typedef struct blocked {
    cwist_job_queue_t *queue;
    int code;
    uint64_t ended_ms;
} blocked;

static void claim_for_long(void *argument)
{
    blocked *self = argument;
    cwist_job_t *job = NULL;
    cwist_error_t error = cwist_job_queue_claim(self->queue, 30000, &job);
    self->code = cwist_job_error_code(&error);
    self->ended_ms = harness_now_ms();
    cwist_job_destroy(job);
}

/* Starts a blocked claim and gives it time to reach the server. */
static harness_thread *start_claim(blocked *self, cwist_job_queue_t *queue)
{
    *self = (blocked){.queue = queue};
    harness_thread *thread = harness_thread_start(claim_for_long, self);
    harness_pass_ms(300);
    return thread;
}

static void interrupt_wakes_a_blocked_claim(void)
{
    blocked waiting;
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    harness_thread *thread = start_claim(&waiting, queue);

    uint64_t start = harness_now_ms();
    CHECK_OK(cwist_job_queue_interrupt(queue));
    harness_thread_join(thread);
    CHECK_INT(CWIST_ERROR_INTERRUPTED, waiting.code);
    CHECK(waiting.ended_ms - start < 500);

    CHECK_OK(cwist_job_queue_enqueue(queue, "after", 5, NULL)); /* the handle goes on */
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void destroy_wakes_a_blocked_claim(void)
{
    blocked waiting;
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    harness_thread *thread = start_claim(&waiting, queue);

    uint64_t start = harness_now_ms();
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    harness_thread_join(thread);
    CHECK_INT(CWIST_ERROR_CLOSED, waiting.code);
    CHECK(waiting.ended_ms - start < 1000);
    CHECK_INT(0, cwist_job_live_handles());
}

/* R12: a blocked claim delays nobody, and gets what another thread enqueues. */
static void a_blocked_claim_delays_no_other_call(void)
{
    blocked waiting;
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    harness_thread *thread = start_claim(&waiting, queue);
    uint64_t count = 0;

    uint64_t start = harness_now_ms();
    CHECK_OK(cwist_job_queue_dead_count(queue, &count));
    CHECK(harness_now_ms() - start < 100);
    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    harness_thread_join(thread);
    CHECK_INT(CWIST_SUCCESS, waiting.code);
    CHECK(waiting.ended_ms - start < 350);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void a_claim_in_slices_waits_on(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    cwist_job_claim_t *claim = NULL;
    cwist_job_t *job = NULL;
    size_t count = 0;

    CHECK_OK(cwist_job_claim_start(&claim, queue, 1, 10000));
    CHECK_OK(cwist_job_claim_wait(claim, 100, &job, &count));
    CHECK(job == NULL);
    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    CHECK_OK(cwist_job_claim_wait(claim, 5000, &job, &count));
    harness_payload_is(job, "x");
    CHECK_OK(cwist_job_queue_ack(queue, job));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_claim_wait(claim, 0, &job, &count));
    cwist_job_claim_end(claim);
    cwist_job_claim_end(claim);
    cwist_job_claim_end(NULL);

    CHECK_OK(cwist_job_claim_start(&claim, queue, 1, 200));
    cwist_error_t error;
    do {
        error = cwist_job_claim_wait(claim, 50, &job, &count);
    } while (cwist_error_is_ok(&error));
    CHECK_CODE(CWIST_ERROR_TIMEOUT, error);
    cwist_job_claim_end(claim);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    CHECK_INT(0, cwist_job_live_handles());
}

/* Rule 14: what a claim that is given up still brings is released, not counted. */
static void a_claim_that_is_given_up_spends_no_attempt(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    for (int i = 0; i < 10; i++) {
        cwist_job_claim_t *claim = NULL;
        cwist_job_t *job = NULL;
        size_t count = 0;
        CHECK_OK(cwist_job_claim_start(&claim, queue, 1, 10000));
        CHECK_OK(cwist_job_claim_wait(claim, 20, &job, &count));
        CHECK(job == NULL);
        CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
        cwist_job_claim_end(claim); /* the job is on its way to it */
        job = harness_claim(queue);
        CHECK_INT(1, cwist_job_attempts(job));
        CHECK_OK(cwist_job_queue_ack(queue, job));
        harness_no_job(queue);
    }
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

/* R06: a claim lasts as long as it was told to. */
static void claims_keep_their_time(void)
{
    static const unsigned timeouts[] = {0, 10, 150, 500, 1200};
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    harness_no_job(queue); /* makes what the queue needs */
    for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++) {
        cwist_job_t *job = NULL;
        uint64_t start = harness_now_ms();
        CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(queue, timeouts[i], &job));
        uint64_t took = harness_now_ms() - start;
        CHECK(took + 5 >= timeouts[i] && took <= timeouts[i] + 250);
    }
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

TEST_MAIN({"everything_after_destroy_says_closed", everything_after_destroy_says_closed},
          {"a_job_is_settled_once", a_job_is_settled_once},
          {"a_job_belongs_to_the_handle_that_claimed_it",
           a_job_belongs_to_the_handle_that_claimed_it},
          {"the_connection_may_go_first", the_connection_may_go_first},
          {"a_queue_of_the_other_engine_is_refused", a_queue_of_the_other_engine_is_refused},
          {"interrupt_wakes_a_blocked_claim", interrupt_wakes_a_blocked_claim},
          {"destroy_wakes_a_blocked_claim", destroy_wakes_a_blocked_claim},
          {"a_blocked_claim_delays_no_other_call", a_blocked_claim_delays_no_other_call},
          {"a_claim_in_slices_waits_on", a_claim_in_slices_waits_on},
          {"a_claim_that_is_given_up_spends_no_attempt",
           a_claim_that_is_given_up_spends_no_attempt},
          {"claims_keep_their_time", claims_keep_their_time})
