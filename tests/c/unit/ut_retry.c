/* The retry policy: how long a nacked job waits. */
#include "core/internal.h"
#include "harness.h"

static cwist_jq__queue with(uint64_t delay_ms, cwist_job_queue_ext_opts_t ext)
{
    cwist_jq__queue queue;

    memset(&queue, 0, sizeof queue);
    queue.retry_delay_ms = delay_ms;
    ext.struct_size = sizeof ext;
    CHECK_INT(CWIST_SUCCESS, cwist_jq__apply_ext_opts(&queue, &ext));
    return queue;
}

static void a_fixed_delay_stays(void)
{
    cwist_jq__queue queue = with(700, (cwist_job_queue_ext_opts_t){0});

    CHECK_INT(700, cwist_jq__retry_delay_ms(&queue, 1));
    CHECK_INT(700, cwist_jq__retry_delay_ms(&queue, 1000000));
}

/* No overflow, no delay beyond the cap, however many attempts. */
static void a_growing_delay_doubles_up_to_its_cap(void)
{
    static const uint64_t want[] = {100, 200, 400, 800, 1500, 1500};
    cwist_jq__queue queue =
        with(100, (cwist_job_queue_ext_opts_t){.retry_backoff = CWIST_JOB_BACKOFF_EXPONENTIAL,
                                               .retry_delay_max_ms = 1500});

    for (uint32_t i = 0; i < sizeof want / sizeof *want; i++) {
        CHECK_INT(want[i], cwist_jq__retry_delay_ms(&queue, i + 1));
    }
    CHECK_INT(1500, cwist_jq__retry_delay_ms(&queue, 1000000));
    CHECK_INT(1500, cwist_jq__retry_delay_ms(&queue, UINT32_MAX));
    CHECK_INT(100, cwist_jq__retry_delay_ms(&queue, 0));

    queue = with(31536000000,
                 (cwist_job_queue_ext_opts_t){.retry_backoff = CWIST_JOB_BACKOFF_EXPONENTIAL});
    CHECK_INT(31536000000, cwist_jq__retry_delay_ms(&queue, 64));
    queue = with(0, (cwist_job_queue_ext_opts_t){.retry_backoff = CWIST_JOB_BACKOFF_EXPONENTIAL});
    CHECK_INT(0, cwist_jq__retry_delay_ms(&queue, UINT32_MAX));
}

static void jitter_takes_off_no_more_than_its_share(void)
{
    cwist_jq__queue queue = with(1000, (cwist_job_queue_ext_opts_t){.retry_jitter_percent = 25});
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    for (int i = 0; i < 10000; i++) {
        uint64_t delay_ms = cwist_jq__retry_delay_ms(&queue, 1);
        least = delay_ms < least ? delay_ms : least;
        most = delay_ms > most ? delay_ms : most;
    }
    CHECK(least >= 750 && least < 760);
    CHECK(most <= 1000 && most > 990);
}

TEST_MAIN({"a_fixed_delay_stays", a_fixed_delay_stays},
          {"a_growing_delay_doubles_up_to_its_cap", a_growing_delay_doubles_up_to_its_cap},
          {"jitter_takes_off_no_more_than_its_share", jitter_takes_off_no_more_than_its_share})
