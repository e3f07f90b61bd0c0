/* The ends of a claimed job with options: delay, dead now, reason, put off; and retry policies. */
#include "harness.h"

static void enqueue(cwist_job_queue_t *queue)
{
    CHECK_OK(cwist_job_queue_enqueue(queue, "work", 4, "kind"));
}

/* Claims the job, which must come so long after `began`, in that delivery. */
static cwist_job_t *claim_after(cwist_job_queue_t *queue, uint64_t began, uint64_t ms,
                                uint32_t attempts)
{
    cwist_job_t *job = harness_claim(queue);

    CHECK(harness_now_ms() - began >= ms);
    CHECK_INT(attempts, cwist_job_attempts(job));
    return job;
}

static void nack(cwist_job_queue_t *queue, cwist_job_t *job, cwist_job_nack_opts_t opts)
{
    CHECK_OK(cwist_job_queue_nack_with(queue, job, &opts));
}

/* ---- nack ---- */

static void a_nack_may_bring_its_own_delay(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.retry_delay_ms = 3600000});

    enqueue(queue);
    uint64_t began = harness_now_ms();
    nack(queue, harness_claim(queue), (cwist_job_nack_opts_t){.delayed = true, .delay_ms = 600});
    harness_no_job(queue);
    cwist_job_t *job = claim_after(queue, began, 600, 2);
    nack(queue, job, (cwist_job_nack_opts_t){.delayed = true}); /* at once */
    CHECK_OK(cwist_job_queue_ack(queue, claim_after(queue, began, 600, 3)));
    harness_close(queue);
}

static void without_options_a_nack_is_a_nack(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 2});

    enqueue(queue);
    CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), NULL));
    nack(queue, harness_claim(queue), (cwist_job_nack_opts_t){.delayed = true, .delay_ms = 9000});
    CHECK_INT(1, harness_dead_count(queue)); /* the last delivery, whatever the delay */
    harness_close(queue);
}

static void a_rejected_job_is_dead_at_once(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    enqueue(queue);
    nack(queue, harness_claim(queue), (cwist_job_nack_opts_t){.dead = true, .reason = "bad"});
    CHECK_INT(1, harness_dead_count(queue));
    harness_no_job(queue);
    harness_close(queue);
}

static void a_wrong_option_leaves_the_job_claimed(void)
{
    static char longest[4098];
    static const cwist_job_nack_opts_t wrong[] = {
        {.delayed = true, .delay_ms = 31536000001},
        {.delayed = true, .dead = true},
        {.reason = longest},
        {.reason = "\xff"},
    };
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    memset(longest, 'r', sizeof longest - 1);
    enqueue(queue);
    cwist_job_t *job = harness_claim(queue);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_nack_with(queue, job, &wrong[i]));
        CHECK_TEXT("nack: ");
        CHECK_TEXT("allowed");
    }
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_release_after(queue, job, 31536000001));
    CHECK_TEXT("delay_ms is 31536000001");
    longest[4096] = '\0';
    nack(queue, job, (cwist_job_nack_opts_t){.reason = longest});
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    harness_close(queue);
}

/* ---- release ---- */

static void a_job_that_is_put_off_spends_no_attempt(void)
{
    if (!harness_has_delays()) {
        return;
    }
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 1});

    enqueue(queue);
    uint64_t began = harness_now_ms();
    for (int i = 0; i < 2; i++) { /* more often than it may be delivered */
        cwist_job_t *job = harness_claim(queue);
        CHECK_OK(cwist_job_queue_release_after(queue, job, 1200));
        CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_ack(queue, job));
        harness_no_job(queue);
    }
    cwist_job_t *job = claim_after(queue, began, 2300, 1);
    CHECK_STR("kind", cwist_job_type(job));
    CHECK_OK(cwist_job_queue_release_after(queue, job, 0)); /* as release */
    CHECK_OK(cwist_job_queue_ack(queue, claim_after(queue, began, 2300, 1)));
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
    harness_close(queue);
}

/* ---- the policy of the queue ---- */

static void delays_grow_from_attempt_to_attempt(void)
{
    static const uint64_t least_ms[] = {200, 400, 500, 500};
    cwist_job_queue_t *queue = harness_open_ext((cwist_job_queue_opts_t){.retry_delay_ms = 200},
                                                (cwist_job_queue_ext_opts_t){
                                                    .retry_backoff = CWIST_JOB_BACKOFF_EXPONENTIAL,
                                                    .retry_delay_max_ms = 500,
                                                });

    enqueue(queue);
    for (uint32_t i = 0; i < 4; i++) {
        cwist_job_t *job = harness_claim(queue);
        CHECK_INT(i + 1, cwist_job_attempts(job));
        uint64_t began = harness_now_ms();
        CHECK_OK(cwist_job_queue_nack(queue, job));
        job = claim_after(queue, began, least_ms[i], i + 2);
        CHECK_OK(cwist_job_queue_release(queue, job));
        if (i == 3) {
            CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
        }
    }
    harness_close(queue);
}

/* Each job of a batch has the delay of its own attempt. */
static void nacks_of_a_batch_have_delays_of_their_own(void)
{
    cwist_job_t *jobs[2];
    cwist_job_queue_t *queue = harness_open_ext(
        (cwist_job_queue_opts_t){.retry_delay_ms = 300},
        (cwist_job_queue_ext_opts_t){.retry_backoff = CWIST_JOB_BACKOFF_EXPONENTIAL});

    enqueue(queue);
    nack(queue, harness_claim(queue), (cwist_job_nack_opts_t){.delayed = true});
    jobs[0] = harness_claim(queue);
    CHECK_INT(2, cwist_job_attempts(jobs[0]));
    enqueue(queue);
    jobs[1] = harness_claim(queue);
    CHECK_INT(1, cwist_job_attempts(jobs[1]));
    uint64_t began = harness_now_ms();
    CHECK_OK(cwist_job_queue_nack_many(queue, jobs, 2, NULL));
    CHECK_OK(cwist_job_queue_ack(queue, claim_after(queue, began, 300, 2)));
    CHECK_OK(cwist_job_queue_ack(queue, claim_after(queue, began, 600, 3)));
    harness_close(queue);
}

TEST_MAIN({"a_nack_may_bring_its_own_delay", a_nack_may_bring_its_own_delay},
          {"without_options_a_nack_is_a_nack", without_options_a_nack_is_a_nack},
          {"a_rejected_job_is_dead_at_once", a_rejected_job_is_dead_at_once},
          {"a_wrong_option_leaves_the_job_claimed", a_wrong_option_leaves_the_job_claimed},
          {"a_job_that_is_put_off_spends_no_attempt", a_job_that_is_put_off_spends_no_attempt},
          {"delays_grow_from_attempt_to_attempt", delays_grow_from_attempt_to_attempt},
          {"nacks_of_a_batch_have_delays_of_their_own", nacks_of_a_batch_have_delays_of_their_own})
