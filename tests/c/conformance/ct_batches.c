/* Batches: many jobs in one call, a result for each (SPEC rules 1 to 6 and 14). */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

#define MOST CWIST_JOB_BATCH_MAX
#define SHORT_MS 1000 /* a visibility timeout that a test can wait for */

typedef cwist_error_t (*settle_many)(cwist_job_queue_t *, cwist_job_t *const *, size_t, int *);

static const settle_many settlers[] = {cwist_job_queue_ack_many, cwist_job_queue_nack_many,
                                       cwist_job_queue_release_many};

/* ---- many jobs ---- */

static char texts[MOST][8]; /* "0", "1", … */

/* `count` small items, numbered from `first`; every third has a type. */
static const cwist_job_item_t *numbered(size_t first, size_t count)
{
    static cwist_job_item_t items[MOST];

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%zu", first + i);
        items[i] = (cwist_job_item_t){
            .payload = texts[i], .len = strlen(texts[i]), .type = i % 3 == 0 ? "third" : NULL};
    }
    return items;
}

static void enqueue_numbered(cwist_job_queue_t *queue, size_t first, size_t count)
{
    CHECK_OK(cwist_job_queue_enqueue_many(queue, numbered(first, count), count, NULL));
}

/* Claims exactly `count` jobs, in as many calls as it takes. */
static void claim_exactly(cwist_job_queue_t *queue, size_t count, cwist_job_t **jobs)
{
    for (size_t have = 0; have < count;) {
        size_t got = 0;
        CHECK_OK(cwist_job_queue_claim_many(queue, count - have, 5000, jobs + have, &got));
        CHECK(got >= 1 && got <= count - have);
        have += got;
    }
}

static void ack_all(cwist_job_queue_t *queue, cwist_job_t *const *jobs, size_t count)
{
    CHECK_OK(cwist_job_queue_ack_many(queue, jobs, count, NULL));
}

static void number_is(const cwist_job_t *job, size_t number)
{
    char want[8];
    (void)snprintf(want, sizeof want, "%zu", number);
    harness_payload_is(job, want);
}

static void codes_are(const int *want, const int *got, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (want[i] != got[i]) {
            harness_fail(__FILE__, __LINE__, "codes[%zu] is %s, not %s", i,
                         cwist_job_error_name(got[i]), cwist_job_error_name(want[i]));
        }
    }
}

static void all_succeeded(const int *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(CWIST_SUCCESS, codes[i]);
    }
}

static char opened[64]; /* the name of the queue under test */

static cwist_job_queue_t *open_queue(cwist_job_queue_opts_t opts)
{
    (void)snprintf(opened, sizeof opened, "%s", harness_queue_name());
    opts.name = opened;
    return harness_open(opts);
}

static void queue_is_empty(cwist_job_queue_t *queue)
{
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
}

/* No job is claimed either: a worker that ends all leases gets none. */
static void nothing_is_left(cwist_job_queue_t *queue)
{
    cwist_job_t *job = NULL;
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *hasty =
        harness_queue(conn, (cwist_job_queue_opts_t){.name = opened, .visibility_timeout_ms = 50});

    queue_is_empty(queue);
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(hasty, 400, &job));
    CHECK_INT(0, harness_dead_count(queue));
    cwist_job_queue_destroy(hasty);
    cwist_job_conn_close(conn);
}

/* ---- enqueue ---- */

static void stored_in_order(size_t count)
{
    static cwist_job_stored_t stored[MOST];
    static cwist_job_t *jobs[MOST];
    static int codes[MOST];
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){0});

    CHECK_OK(cwist_job_queue_enqueue_many(queue, numbered(0, count), count, stored));
    claim_exactly(queue, count, jobs);
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(CWIST_SUCCESS, stored[i].code);
        number_is(jobs[i], i);
        CHECK_STR(stored[i].id, cwist_job_id(jobs[i]));
        CHECK_STR(i % 3 == 0 ? "third" : NULL, cwist_job_type(jobs[i]));
        CHECK_INT(1, cwist_job_attempts(jobs[i]));
        CHECK(i == 0 || strcmp(stored[i].id, stored[i - 1].id) != 0);
    }
    CHECK_OK(cwist_job_queue_ack_many(queue, jobs, count, codes));
    all_succeeded(codes, count);
    nothing_is_left(queue);
    harness_close(queue);
}

static void jobs_of_a_batch_keep_their_order_and_ids(void)
{
    stored_in_order(1);
    stored_in_order(100);
}

static void a_batch_may_be_as_long_as_allowed(void)
{
    stored_in_order(MOST);
}

/* Single calls and batches see the same queue. */
static void batches_and_single_calls_mix(void)
{
    cwist_job_t *jobs[2];
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){0});

    CHECK_OK(cwist_job_queue_enqueue(queue, "0", 1, NULL));
    enqueue_numbered(queue, 1, 3);
    CHECK_OK(cwist_job_queue_enqueue(queue, "4", 1, NULL));
    for (size_t i = 0; i < 4; i += 2) {
        claim_exactly(queue, 2, jobs);
        number_is(jobs[0], i);
        number_is(jobs[1], i + 1);
        CHECK_OK(cwist_job_queue_ack(queue, jobs[1]));
        ack_all(queue, jobs, 1);
    }
    jobs[0] = harness_claim(queue);
    number_is(jobs[0], 4);
    ack_all(queue, jobs, 1);
    nothing_is_left(queue);
    harness_close(queue);
}

/* P01, P02: sizes from nothing to the limit in one batch, every byte value. */
static void payloads_of_all_sizes_share_a_batch(void)
{
    static const size_t sizes[] = {1024 * 1024 - 20480, 0, 1,     70000, 0,    4096,
                                   1024 * 1024 - 20480, 3, 65536, 255,   2047, 32769};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    cwist_job_item_t items[COUNT];
    cwist_job_t *jobs[COUNT];
    unsigned char *bytes = malloc(sizes[0] + COUNT);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < sizes[0] + COUNT; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    }
    for (size_t i = 0; i < COUNT; i++) {
        items[i] = (cwist_job_item_t){.payload = bytes + i, .len = sizes[i], .type = "bytes"};
    }
    items[1].payload = NULL; /* allowed with no length */
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){0});
    CHECK_OK(cwist_job_queue_enqueue_many(queue, items, COUNT, NULL));
    claim_exactly(queue, COUNT, jobs);
    for (size_t i = 0; i < COUNT; i++) {
        size_t len = 1;
        const void *payload = cwist_job_payload(jobs[i], &len);
        CHECK_INT(sizes[i], len);
        CHECK(len == 0 || memcmp(payload, bytes + i, len) == 0);
        CHECK_STR("bytes", cwist_job_type(jobs[i]));
    }
    ack_all(queue, jobs, COUNT);
    nothing_is_left(queue);
    free(bytes);
    harness_close(queue);
}

typedef cwist_error_t (*enqueuer)(cwist_job_queue_t *, const cwist_job_item_t *, size_t,
                                  cwist_job_stored_t *);

/* All items are looked at before the first is sent. */
static void a_bad_item_stops_the_whole_batch(void)
{
    static const enqueuer calls[] = {cwist_job_queue_enqueue_many, cwist_job_queue_enqueue_all};
    static char long_type[300];
    static const cwist_job_item_t bad[] = {{.len = 1},
                                           {.payload = "x", .len = 1, .type = "a\nb"},
                                           {.payload = "x", .len = 1, .type = long_type},
                                           {.payload = "x", .len = 1, .type = "\xff"},
                                           {.payload = "x", .len = (size_t)1 << 40}};
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    memset(long_type, 'x', sizeof long_type - 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cwist_job_item_t items[] = {{.payload = "a", .len = 1},
                                    {.payload = "b", .len = 1},
                                    bad[i],
                                    {.payload = "d", .len = 1}};
        int code = items[2].len > 1 ? CWIST_ERROR_TOO_LARGE : CWIST_ERROR_INVALID_PARAM;
        for (size_t call = 0; call < 2; call++) {
            cwist_job_stored_t stored[4];
            memset(stored, 1, sizeof stored);
            CHECK_CODE(code, calls[call](queue, items, 4, stored));
            CHECK_TEXT("items[2]");
            CHECK_CODE(code, calls[call](queue, items, 4, NULL));
            for (size_t at = 0; at < 4; at++) {
                CHECK_INT(at == 2 ? code : CWIST_ERROR_NOT_SENT, stored[at].code);
                CHECK_STR("", stored[at].id);
            }
        }
    }
    queue_is_empty(queue);
    harness_close(queue);
}

/* All or none. A server without such a step says so, and stores nothing. */
static void enqueue_all_stores_in_one_step(void)
{
    enum { JOBS = 60 };
    cwist_job_stored_t stored[JOBS];
    cwist_job_t *jobs[JOBS];
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){0});
    cwist_error_t error = cwist_job_queue_enqueue_all(queue, numbered(0, JOBS), JOBS, stored);

    if (strcmp(harness_engine(), "nats") == 0 &&
        cwist_job_error_code(&error) == CWIST_ERROR_UNSUPPORTED) {
        CHECK_TEXT("2.12");
        for (size_t i = 0; i < JOBS; i++) {
            CHECK(stored[i].code != CWIST_SUCCESS && stored[i].id[0] == '\0');
        }
        CHECK_OK(cwist_job_queue_enqueue_all(queue, numbered(0, 1), 1, stored)); /* one is a step */
        CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    } else {
        CHECK_OK(error);
        claim_exactly(queue, JOBS, jobs);
        for (size_t i = 0; i < JOBS; i++) {
            CHECK_INT(CWIST_SUCCESS, stored[i].code);
            number_is(jobs[i], i);
            CHECK_STR(stored[i].id, cwist_job_id(jobs[i]));
            CHECK_STR(i % 3 == 0 ? "third" : NULL, cwist_job_type(jobs[i]));
        }
        ack_all(queue, jobs, JOBS);
    }
    nothing_is_left(queue);
    harness_close(queue);
}

/* ---- what is refused ---- */

static void a_count_out_of_range_consumes_nothing(void)
{
    static const size_t counts[] = {0, MOST + 1, SIZE_MAX};
    static cwist_job_t *jobs[MOST + 1];
    static cwist_job_item_t items[MOST + 1];
    cwist_job_t *next[1];
    size_t got = 0;
    int codes[1];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    enqueue_numbered(queue, 0, 1);
    jobs[0] = harness_claim(queue);
    for (size_t i = 0; i < 3; i++) {
        for (size_t call = 0; call < 3; call++) {
            CHECK_CODE(CWIST_ERROR_INVALID_PARAM, settlers[call](queue, jobs, counts[i], NULL));
            CHECK_TEXT("allowed: 1 to 1000");
        }
        CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
                   cwist_job_queue_enqueue_many(queue, items, counts[i], NULL));
        CHECK_TEXT("allowed: 1 to 1000");
        CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
                   cwist_job_queue_enqueue_all(queue, items, counts[i], NULL));
        got = 7;
        CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
                   cwist_job_queue_claim_many(queue, counts[i], 0, next, &got));
        CHECK_TEXT("allowed: 1 to 1000");
        CHECK_INT(0, got);
        got = 7;
        CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
                   cwist_job_queue_ack_and_claim(queue, jobs, 1, codes, counts[i], 0, next, &got));
        CHECK_INT(0, got);
    }
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
               cwist_job_queue_ack_and_claim(queue, jobs, MOST + 1, codes, 1, 0, next, &got));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
               cwist_job_queue_ack_and_claim(queue, jobs, 1, NULL, 1, 0, next, &got));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
               cwist_job_queue_ack_and_claim(queue, NULL, 1, codes, 1, 0, next, &got));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
               cwist_job_queue_ack_and_claim(queue, jobs, 1, codes, 1, 0, NULL, &got));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_claim_many(queue, 1, 0, NULL, &got));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_claim_many(queue, 1, 0, next, NULL));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_ack_many(queue, NULL, 1, NULL));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_queue_enqueue_many(queue, NULL, 1, NULL));
    number_is(jobs[0], 0); /* the handle lives */
    ack_all(queue, jobs, 1);
    queue_is_empty(queue);
    harness_close(queue);
}

static void batches_after_destroy_say_closed(void)
{
    static const int closed[] = {CWIST_ERROR_CLOSED, CWIST_ERROR_CLOSED, CWIST_ERROR_CLOSED};
    cwist_job_t *jobs[4][3];
    cwist_job_t *next[1];
    int codes[3];
    size_t got = 7;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    enqueue_numbered(queue, 0, 12);
    for (size_t i = 0; i < 4; i++) {
        claim_exactly(queue, 3, jobs[i]);
    }
    cwist_job_queue_destroy(queue);
    for (size_t call = 0; call < 3; call++) {
        CHECK_CODE(CWIST_ERROR_CLOSED, settlers[call](queue, jobs[call], 3, codes));
        codes_are(closed, codes, 3);
    }
    CHECK_CODE(CWIST_ERROR_CLOSED,
               cwist_job_queue_ack_and_claim(queue, jobs[3], 3, codes, 1, 0, next, &got));
    codes_are(closed, codes, 3);
    CHECK_INT(0, got);
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_enqueue_many(queue, numbered(0, 2), 2, NULL));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_enqueue_all(queue, numbered(0, 2), 2, NULL));
    CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_claim_many(queue, 1, 0, next, &got));
    harness_close(queue); /* and every handle was consumed */
}

/* ---- claim ---- */

static void a_claim_brings_what_is_ready_up_to_most(void)
{
    static cwist_job_t *jobs[100];
    size_t got = 0;
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){0});

    enqueue_numbered(queue, 0, 100);
    for (size_t have = 0; have < 100; have += got) {
        static const size_t most[] = {1, 7, 30, 62};
        size_t call = have == 0 ? 0 : have == 1 ? 1 : have == 8 ? 2 : 3;
        uint64_t start = harness_now_ms();
        CHECK_OK(cwist_job_queue_claim_many(queue, most[call], 20000, jobs, &got));
        CHECK(harness_now_ms() - start < 5000); /* it does not wait for more */
        CHECK_INT(most[call], got);
        for (size_t i = 0; i < got; i++) {
            number_is(jobs[i], have + i);
        }
        ack_all(queue, jobs, got);
    }
    enqueue_numbered(queue, 0, 40);
    uint64_t start = harness_now_ms();
    CHECK_OK(cwist_job_queue_claim_many(queue, 100, 20000, jobs, &got));
    CHECK(harness_now_ms() - start < 5000);
    CHECK_INT(40, got);
    ack_all(queue, jobs, got);
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim_many(queue, 100, 0, jobs, &got));
    CHECK_INT(0, got);
    nothing_is_left(queue);
    harness_close(queue);
}

typedef struct blocked {
    cwist_job_queue_t *queue;
    cwist_job_t *jobs[10];
    size_t count;
    int code;
    uint64_t ended_ms;
    bool acks; /* by itself, what it claimed */
} blocked;

static void claim_for_long(void *argument)
{
    blocked *self = argument;
    cwist_error_t error =
        cwist_job_queue_claim_many(self->queue, 10, 30000, self->jobs, &self->count);
    self->code = cwist_job_error_code(&error);
    self->ended_ms = harness_now_ms();
    if (self->acks && self->count != 0) {
        ack_all(self->queue, self->jobs, self->count);
    }
}

/* Starts a blocked claim of up to ten jobs and gives it time to reach the server. */
static harness_thread *start_claim(blocked *self, cwist_job_queue_t *queue, bool acks)
{
    *self = (blocked){.queue = queue, .acks = acks};
    harness_thread *thread = harness_thread_start(claim_for_long, self);
    harness_pass_ms(300);
    return thread;
}

/* R12: and it delays no batch of another thread. */
static void a_claim_waits_for_the_first_job_only(void)
{
    blocked waiting;
    cwist_job_t *job = NULL;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    enqueue_numbered(queue, 0, 1);
    job = harness_claim(queue);
    harness_thread *thread = start_claim(&waiting, queue, false);

    uint64_t start = harness_now_ms();
    ack_all(queue, &job, 1);
    enqueue_numbered(queue, 5, 1);
    harness_thread_join(thread);
    CHECK_INT(CWIST_SUCCESS, waiting.code);
    CHECK(waiting.ended_ms - start < 500);
    CHECK_INT(1, waiting.count);
    number_is(waiting.jobs[0], 5);
    ack_all(queue, waiting.jobs, 1);
    queue_is_empty(queue);
    harness_close(queue);
}

/* R06. */
static void claims_of_many_keep_their_time(void)
{
    static const unsigned timeouts[] = {0, 10, 150, 500, 1200};
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    harness_no_job(queue); /* makes what the queue needs */
    for (size_t i = 0; i < 2 * sizeof timeouts / sizeof *timeouts; i++) {
        cwist_job_t *jobs[50];
        size_t got = 0;
        unsigned timeout = timeouts[i / 2];
        uint64_t start = harness_now_ms();
        CHECK_CODE(CWIST_ERROR_TIMEOUT,
                   i % 2 == 0 ? cwist_job_queue_claim_many(queue, 50, timeout, jobs, &got)
                              : cwist_job_queue_ack_and_claim(queue, NULL, 0, NULL, 50, timeout,
                                                              jobs, &got));
        uint64_t took = harness_now_ms() - start;
        CHECK(took + 5 >= timeout && took <= timeout + 250);
    }
    harness_close(queue);
}

static void every_job_of_a_batch_has_its_lease(void)
{
    enum { JOBS = 20, VISIBILITY = 20000 };
    cwist_job_t *jobs[JOBS];
    uint64_t first[JOBS];
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.visibility_timeout_ms = VISIBILITY});

    enqueue_numbered(queue, 0, JOBS);
    claim_exactly(queue, JOBS, jobs);
    for (size_t i = 0; i < JOBS; i++) {
        first[i] = cwist_job_lease_remaining_ms(jobs[i]);
        CHECK(first[i] > VISIBILITY / 2 && first[i] <= VISIBILITY);
    }
    harness_pass_ms(300);
    CHECK_OK(cwist_job_queue_extend(queue, jobs[0]));
    CHECK(cwist_job_lease_remaining_ms(jobs[0]) + 200 > first[0]);
    for (size_t i = 1; i < JOBS; i++) {
        CHECK(cwist_job_lease_remaining_ms(jobs[i]) + 300 <= first[i] + 1);
    }
    ack_all(queue, jobs, JOBS);
    CHECK_INT(0, cwist_job_lease_remaining_ms(jobs[0]));
    CHECK_INT(0, cwist_job_lease_remaining_ms(NULL));
    harness_close(queue);
}

/* X05: a job that may not be delivered again does not hold up the rest of its batch. */
static void spent_jobs_among_others_become_dead_letters(void)
{
    enum { JOBS = 9 };
    cwist_job_t *jobs[JOBS];
    size_t seen = 0;
    const char *name = harness_queue_name();
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.name = name});
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *strict =
        harness_queue(conn, (cwist_job_queue_opts_t){.name = name, .max_retries = 1});

    enqueue_numbered(queue, 0, JOBS);
    claim_exactly(queue, JOBS, jobs);
    for (size_t i = 0; i < JOBS; i++) { /* every third spends an attempt */
        CHECK_OK(i % 3 == 0 ? cwist_job_queue_nack(queue, jobs[i])
                            : cwist_job_queue_release(queue, jobs[i]));
    }
    while (seen < JOBS - JOBS / 3) {
        size_t got = 0;
        CHECK_OK(cwist_job_queue_claim_many(strict, JOBS, 5000, jobs, &got));
        for (size_t i = 0; i < got; i++) {
            CHECK_INT(1, cwist_job_attempts(jobs[i]));
        }
        ack_all(strict, jobs, got);
        seen += got;
    }
    harness_no_job(strict);
    CHECK_INT(JOBS / 3, harness_dead_count(queue));
    cwist_job_queue_destroy(strict);
    cwist_job_conn_close(conn);
    harness_close(queue);
}

/* ---- the ends of jobs ---- */

static void each_handle_gets_its_own_code(void)
{
    static const int want[] = {CWIST_SUCCESS, CWIST_ERROR_CLOSED,        CWIST_ERROR_INVALID_PARAM,
                               CWIST_SUCCESS, CWIST_ERROR_INVALID_PARAM, CWIST_ERROR_CLOSED};
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *other = harness_queue(conn, (cwist_job_queue_opts_t){0});

    for (size_t call = 0; call < 3; call++) {
        int codes[6];
        cwist_job_t *jobs[3];
        enqueue_numbered(queue, 0, 3);
        enqueue_numbered(other, 0, 1);
        claim_exactly(queue, 3, jobs);
        cwist_job_t *foreign = harness_claim(other);
        cwist_job_t *const batch[] = {jobs[0], jobs[0], foreign, jobs[1], NULL, jobs[2]};
        cwist_job_destroy(jobs[2]);

        CHECK_CODE(CWIST_ERROR_CLOSED, settlers[call](queue, batch, 6, codes));
        CHECK_TEXT("jobs[1]");
        codes_are(want, codes, 6);
        CHECK_CODE(CWIST_ERROR_INVALID_PARAM, settlers[call](queue, batch + 4, 1, NULL));
        CHECK_CODE(CWIST_ERROR_CLOSED, cwist_job_queue_ack(other, foreign)); /* consumed */
        for (size_t i = 0; call != 0 && i < 2; i++) { /* what was not acked comes again */
            jobs[i] = harness_claim(queue);
            CHECK_INT(call == 1 ? 2 : 1, cwist_job_attempts(jobs[i]));
        }
        if (call != 0) {
            ack_all(queue, jobs, 2);
        }
        harness_no_job(queue);
    }
    cwist_job_queue_destroy(other);
    cwist_job_conn_close(conn);
    harness_close(queue);
}

/* D04: in a batch too, a delivery that was given away changes nothing and says so. */
static void a_lost_lease_among_others_is_told(void)
{
    static const int want[] = {CWIST_SUCCESS, CWIST_ERROR_LEASE_LOST, CWIST_SUCCESS};

    for (size_t call = 0; call < 3; call++) {
        int codes[3];
        cwist_job_t *good[2];
        cwist_job_queue_t *queue = open_queue(
            (cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS, .max_retries = 99});
        enqueue_numbered(queue, 0, 1);
        cwist_job_t *late = harness_claim(queue);
        cwist_job_t *fresh = harness_claim(queue); /* comes when the first lease ends */
        CHECK_INT(2, cwist_job_attempts(fresh));
        CHECK_INT(0, cwist_job_lease_remaining_ms(late));
        enqueue_numbered(queue, 1, 2);
        claim_exactly(queue, 2, good);
        cwist_job_t *const batch[] = {good[0], late, good[1]};

        CHECK_CODE(CWIST_ERROR_LEASE_LOST, settlers[call](queue, batch, 3, codes));
        CHECK_TEXT("jobs[1]");
        codes_are(want, codes, 3);
        CHECK_OK(cwist_job_queue_extend(queue, fresh)); /* still its owner's */
        ack_all(queue, &fresh, 1);
        if (call != 0) {
            claim_exactly(queue, 2, good);
            ack_all(queue, good, 2);
        }
        nothing_is_left(queue);
        harness_close(queue);
    }
}

/* Rule 4: at that nack, not at a later claim. */
static void nacks_of_a_batch_retry_or_bury_each_job(void)
{
    enum { JOBS = 6 };
    cwist_job_t *jobs[JOBS];
    cwist_job_t *mixed[JOBS];
    int codes[JOBS];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 2});

    enqueue_numbered(queue, 0, JOBS / 2);
    claim_exactly(queue, JOBS / 2, jobs);
    CHECK_OK(cwist_job_queue_nack_many(queue, jobs, JOBS / 2, codes));
    all_succeeded(codes, JOBS / 2);
    CHECK_INT(0, harness_dead_count(queue));
    claim_exactly(queue, JOBS / 2, jobs);
    enqueue_numbered(queue, JOBS / 2, JOBS / 2);
    claim_exactly(queue, JOBS / 2, jobs + JOBS / 2);
    for (size_t i = 0; i < JOBS; i++) { /* the last delivery and the first by turns */
        mixed[i] = jobs[i / 2 + i % 2 * (JOBS / 2)];
        CHECK_INT(i % 2 == 0 ? 2 : 1, cwist_job_attempts(mixed[i]));
    }
    CHECK_OK(cwist_job_queue_nack_many(queue, mixed, JOBS, codes));
    all_succeeded(codes, JOBS);
    CHECK_INT(JOBS / 2, harness_dead_count(queue));
    claim_exactly(queue, JOBS / 2, jobs);
    for (size_t i = 0; i < JOBS / 2; i++) {
        number_is(jobs[i], JOBS / 2 + i);
        CHECK_INT(2, cwist_job_attempts(jobs[i]));
    }
    ack_all(queue, jobs, JOBS / 2);
    harness_no_job(queue);
    harness_close(queue);
}

/* S14. */
static void nacks_of_a_batch_keep_the_retry_delay(void)
{
    enum { JOBS = 5 };
    cwist_job_t *jobs[JOBS];
    cwist_job_queue_t *queue =
        open_queue((cwist_job_queue_opts_t){.retry_delay_ms = 700, .visibility_timeout_ms = 60000});

    enqueue_numbered(queue, 0, JOBS);
    claim_exactly(queue, JOBS, jobs);
    CHECK_OK(cwist_job_queue_nack_many(queue, jobs, JOBS, NULL));
    uint64_t start = harness_now_ms();
    harness_no_job(queue);
    claim_exactly(queue, JOBS, jobs);
    uint64_t waited = harness_now_ms() - start;
    CHECK(waited >= 600 && waited < 2000);
    ack_all(queue, jobs, JOBS);
    nothing_is_left(queue);
    harness_close(queue);
}

/* Rule 14; N05: even where one delivery is all that is allowed. */
static void releases_of_a_batch_spend_no_attempt(void)
{
    enum { JOBS = 50 };
    cwist_job_t *jobs[JOBS];
    int codes[JOBS];
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){.max_retries = 1});

    enqueue_numbered(queue, 0, JOBS);
    for (int round = 0; round < 3; round++) {
        bool seen[JOBS] = {false};
        claim_exactly(queue, JOBS, jobs);
        for (size_t i = 0; i < JOBS; i++) {
            size_t len = 0;
            char text[8] = "";
            const void *payload = cwist_job_payload(jobs[i], &len);
            CHECK(len < sizeof text);
            memcpy(text, payload, len);
            seen[atoi(text)] = true;
            CHECK_INT(1, cwist_job_attempts(jobs[i]));
        }
        for (size_t i = 0; i < JOBS; i++) {
            CHECK(seen[i]);
        }
        CHECK_OK(cwist_job_queue_release_many(queue, jobs, JOBS, codes));
        all_succeeded(codes, JOBS);
    }
    claim_exactly(queue, JOBS, jobs);
    ack_all(queue, jobs, JOBS);
    nothing_is_left(queue);
    harness_close(queue);
}

/* ---- ack and claim ---- */

static void ack_and_claim_works_through_a_queue(void)
{
    enum { JOBS = 10, STEP = 4 };
    cwist_job_t *jobs[STEP];
    int codes[STEP];
    size_t have = 0;
    size_t done = 0;
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){0});

    enqueue_numbered(queue, 0, JOBS);
    for (;;) {
        cwist_job_t *next[STEP];
        size_t got = 0;
        cwist_error_t error = cwist_job_queue_ack_and_claim(queue, jobs, have, codes, STEP,
                                                            done < JOBS ? 5000 : 0, next, &got);
        all_succeeded(codes, have);
        if (done == JOBS) {
            CHECK_CODE(CWIST_ERROR_TIMEOUT, error);
            CHECK_INT(0, got);
            break;
        }
        CHECK_OK(error);
        for (size_t i = 0; i < got; i++) {
            number_is(next[i], done + i);
            CHECK_INT(1, cwist_job_attempts(next[i]));
        }
        memcpy(jobs, next, got * sizeof *jobs);
        have = got;
        done += got;
    }
    nothing_is_left(queue);
    harness_close(queue);
}

/* What became of the acks stands in codes alone; the claim is made all the same. */
static void ack_and_claim_tells_each_ack(void)
{
    static const int want[] = {CWIST_ERROR_INVALID_PARAM, CWIST_SUCCESS, CWIST_ERROR_CLOSED};
    cwist_job_t *jobs[2];
    cwist_job_t *next[2];
    size_t got = 0;
    int codes[3];
    cwist_job_queue_t *queue = open_queue((cwist_job_queue_opts_t){0});

    enqueue_numbered(queue, 0, 2);
    claim_exactly(queue, 1, jobs);
    cwist_job_t *const batch[] = {NULL, jobs[0], jobs[0]};
    CHECK_OK(cwist_job_queue_ack_and_claim(queue, batch, 3, codes, 2, 5000, next, &got));
    codes_are(want, codes, 3);
    CHECK_INT(1, got);
    number_is(next[0], 1);
    cwist_job_t *const bad[] = {jobs[0], jobs[0]}; /* no ack is left to make */
    CHECK_OK(cwist_job_queue_enqueue(queue, "2", 1, NULL));
    CHECK_OK(cwist_job_queue_ack_and_claim(queue, bad, 2, codes, 2, 5000, jobs, &got));
    CHECK_INT(CWIST_ERROR_CLOSED, codes[0]);
    CHECK_INT(CWIST_ERROR_CLOSED, codes[1]);
    CHECK_INT(1, got);
    jobs[1] = next[0];
    ack_all(queue, jobs, 2);
    nothing_is_left(queue);
    harness_close(queue);
}

static void enqueue_soon(void *argument)
{
    harness_pass_ms(300);
    enqueue_numbered(argument, 7, 1);
}

static void ack_and_claim_waits_for_a_job(void)
{
    cwist_job_t *job = NULL;
    cwist_job_t *next[5];
    size_t got = 0;
    int code = CWIST_FAILURE;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    enqueue_numbered(queue, 0, 1);
    job = harness_claim(queue);
    harness_thread *thread = harness_thread_start(enqueue_soon, queue);
    uint64_t start = harness_now_ms();
    CHECK_OK(cwist_job_queue_ack_and_claim(queue, &job, 1, &code, 5, 20000, next, &got));
    uint64_t took = harness_now_ms() - start;
    harness_thread_join(thread);
    CHECK(took >= 250 && took < 1000);
    CHECK_INT(CWIST_SUCCESS, code);
    CHECK_INT(1, got);
    number_is(next[0], 7);
    ack_all(queue, next, 1);
    queue_is_empty(queue);
    harness_close(queue);
}

/* ---- claims that are given up ---- */

static void interrupt_wakes_a_claim_of_many(void)
{
    blocked waiting;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    harness_thread *thread = start_claim(&waiting, queue, false);

    uint64_t start = harness_now_ms();
    CHECK_OK(cwist_job_queue_interrupt(queue));
    harness_thread_join(thread);
    CHECK_INT(CWIST_ERROR_INTERRUPTED, waiting.code);
    CHECK_INT(0, waiting.count);
    CHECK(waiting.ended_ms - start < 500);
    harness_close(queue);
}

/* Claims what is left of ten jobs: none of them may have spent an attempt. */
static void rest_is_untouched(cwist_job_queue_t *queue, size_t count)
{
    cwist_job_t *jobs[10];

    if (count != 0) {
        claim_exactly(queue, count, jobs);
        for (size_t i = 0; i < count; i++) {
            CHECK_INT(1, cwist_job_attempts(jobs[i]));
        }
        ack_all(queue, jobs, count);
    }
    queue_is_empty(queue);
}

/* Rule 14: jobs that were on their way to the claim are released, not lost and not counted. */
static void an_interrupt_hands_back_what_arrives(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    for (int i = 0; i < 10; i++) {
        blocked waiting;
        harness_thread *thread = start_claim(&waiting, queue, true);
        enqueue_numbered(queue, 0, 10);
        CHECK_OK(cwist_job_queue_interrupt(queue));
        harness_thread_join(thread);
        CHECK(waiting.code == CWIST_SUCCESS || waiting.code == CWIST_ERROR_INTERRUPTED);
        CHECK(waiting.code == CWIST_SUCCESS || waiting.count == 0);
        rest_is_untouched(queue, 10 - waiting.count);
    }
    harness_close(queue);
}

static void a_destroy_hands_back_what_arrives(void)
{
    cwist_job_conn_t *conn = harness_connect();

    for (int i = 0; i < 10; i++) {
        blocked waiting;
        const char *name = harness_queue_name();
        cwist_job_queue_t *staying = harness_queue(conn, (cwist_job_queue_opts_t){.name = name});
        cwist_job_queue_t *going = harness_queue(conn, (cwist_job_queue_opts_t){.name = name});
        harness_thread *thread = start_claim(&waiting, going, false);
        enqueue_numbered(staying, 0, 10);
        cwist_job_queue_destroy(going);
        harness_thread_join(thread);
        CHECK(waiting.code == CWIST_SUCCESS || waiting.code == CWIST_ERROR_CLOSED);
        CHECK(waiting.code == CWIST_SUCCESS || waiting.count == 0);
        for (size_t at = 0; at < waiting.count; at++) { /* it was quicker; nobody can ack these */
            cwist_job_destroy(waiting.jobs[at]);
        }
        rest_is_untouched(staying, 10 - waiting.count);
        cwist_job_queue_destroy(staying);
    }
    cwist_job_conn_close(conn);
    CHECK_INT(0, cwist_job_live_handles());
}

static void a_claim_in_slices_that_is_given_up_hands_all_back(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    for (int i = 0; i < 10; i++) {
        cwist_job_claim_t *claim = NULL;
        cwist_job_t *jobs[10];
        size_t got = 0;
        CHECK_OK(cwist_job_claim_start(&claim, queue, 10, 10000));
        CHECK_OK(cwist_job_claim_wait(claim, 20, jobs, &got));
        CHECK_INT(0, got);
        enqueue_numbered(queue, 0, 10);
        cwist_job_claim_end(claim); /* the jobs are on their way to it */
        rest_is_untouched(queue, 10);
    }
    harness_close(queue);
}

static void a_claim_in_slices_brings_many(void)
{
    cwist_job_claim_t *claim = NULL;
    cwist_job_t *jobs[10];
    size_t got = 0;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_claim_start(&claim, queue, 0, 0));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_claim_start(&claim, queue, MOST + 1, 0));
    enqueue_numbered(queue, 0, 8);
    CHECK_OK(cwist_job_claim_start(&claim, queue, 10, 10000));
    CHECK_OK(cwist_job_claim_wait(claim, 5000, jobs, &got));
    CHECK_INT(8, got);
    number_is(jobs[7], 7);
    ack_all(queue, jobs, got);
    cwist_job_claim_end(claim);
    queue_is_empty(queue);
    harness_close(queue);
}

TEST_MAIN({"jobs_of_a_batch_keep_their_order_and_ids", jobs_of_a_batch_keep_their_order_and_ids},
          {"a_batch_may_be_as_long_as_allowed", a_batch_may_be_as_long_as_allowed},
          {"batches_and_single_calls_mix", batches_and_single_calls_mix},
          {"payloads_of_all_sizes_share_a_batch", payloads_of_all_sizes_share_a_batch},
          {"a_bad_item_stops_the_whole_batch", a_bad_item_stops_the_whole_batch},
          {"enqueue_all_stores_in_one_step", enqueue_all_stores_in_one_step},
          {"a_count_out_of_range_consumes_nothing", a_count_out_of_range_consumes_nothing},
          {"batches_after_destroy_say_closed", batches_after_destroy_say_closed},
          {"a_claim_brings_what_is_ready_up_to_most", a_claim_brings_what_is_ready_up_to_most},
          {"a_claim_waits_for_the_first_job_only", a_claim_waits_for_the_first_job_only},
          {"claims_of_many_keep_their_time", claims_of_many_keep_their_time},
          {"every_job_of_a_batch_has_its_lease", every_job_of_a_batch_has_its_lease},
          {"spent_jobs_among_others_become_dead_letters",
           spent_jobs_among_others_become_dead_letters},
          {"each_handle_gets_its_own_code", each_handle_gets_its_own_code},
          {"a_lost_lease_among_others_is_told", a_lost_lease_among_others_is_told},
          {"nacks_of_a_batch_retry_or_bury_each_job", nacks_of_a_batch_retry_or_bury_each_job},
          {"nacks_of_a_batch_keep_the_retry_delay", nacks_of_a_batch_keep_the_retry_delay},
          {"releases_of_a_batch_spend_no_attempt", releases_of_a_batch_spend_no_attempt},
          {"ack_and_claim_works_through_a_queue", ack_and_claim_works_through_a_queue},
          {"ack_and_claim_tells_each_ack", ack_and_claim_tells_each_ack},
          {"ack_and_claim_waits_for_a_job", ack_and_claim_waits_for_a_job},
          {"interrupt_wakes_a_claim_of_many", interrupt_wakes_a_claim_of_many},
          {"an_interrupt_hands_back_what_arrives", an_interrupt_hands_back_what_arrives},
          {"a_destroy_hands_back_what_arrives", a_destroy_hands_back_what_arrives},
          {"a_claim_in_slices_that_is_given_up_hands_all_back",
           a_claim_in_slices_that_is_given_up_hands_all_back},
          {"a_claim_in_slices_brings_many", a_claim_in_slices_brings_many})
