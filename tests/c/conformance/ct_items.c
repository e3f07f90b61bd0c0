/* Jobs with options: delay, dedupe key, headers, and queues of a limited length. */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

#define SHORT_MS 400 /* a visibility timeout that a test can wait for */

static cwist_job_item_t text_item(const char *payload)
{
    return (cwist_job_item_t){.payload = payload, .len = strlen(payload)};
}

static cwist_job_stored_t store(cwist_job_queue_t *queue, cwist_job_item_t item)
{
    cwist_job_stored_t stored;

    CHECK_OK(cwist_job_queue_enqueue_item(queue, &item, &stored));
    CHECK_INT(CWIST_SUCCESS, stored.code);
    CHECK(stored.id[0] != '\0');
    return stored;
}

static void ack_next(cwist_job_queue_t *queue, const char *payload)
{
    cwist_job_t *job = harness_claim(queue);

    harness_payload_is(job, payload);
    CHECK_OK(cwist_job_queue_ack(queue, job));
}

static void nothing_is_left(cwist_job_queue_t *queue)
{
    harness_no_job(queue);
    CHECK_INT(0, harness_dead_count(queue));
}

/* ---- delay ---- */

static void a_delayed_job_comes_when_it_is_due(void)
{
    if (!harness_has_delays()) {
        return;
    }
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_item_t later = text_item("later");

    later.delay_ms = 1500;
    later.type = "slow";
    uint64_t began = harness_now_ms();
    cwist_job_stored_t stored = store(queue, later);
    (void)store(queue, text_item("now"));
    ack_next(queue, "now");
    harness_no_job(queue);
    cwist_job_t *job = harness_claim(queue);
    CHECK(harness_now_ms() - began >= 1400);
    harness_payload_is(job, "later");
    CHECK_STR("slow", cwist_job_type(job));
    CHECK_STR(stored.id, cwist_job_id(job));
    CHECK_INT(1, cwist_job_attempts(job));
    CHECK_OK(cwist_job_queue_nack(queue, job)); /* and from here on it is like any other */
    job = harness_claim(queue);
    CHECK_STR(stored.id, cwist_job_id(job));
    CHECK_INT(2, cwist_job_attempts(job));
    CHECK_OK(cwist_job_queue_ack(queue, job));
    nothing_is_left(queue);
    harness_close(queue);
}

/* T02: each at its own time, not in ticks. */
static void delayed_jobs_come_in_the_order_of_their_times(void)
{
    if (!harness_has_delays()) {
        return;
    }
    static const unsigned delays_ms[] = {1900, 1000, 1600, 1300};
    static const char *const names[] = {"1000", "1300", "1600", "1900"};
    cwist_job_item_t items[4];
    char texts[4][8];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%u", delays_ms[i]);
        items[i] = text_item(texts[i]);
        items[i].delay_ms = delays_ms[i];
    }
    uint64_t began = harness_now_ms();
    CHECK_OK(cwist_job_queue_enqueue_many(queue, items, 4, NULL));
    for (size_t i = 0; i < 4; i++) {
        ack_next(queue, names[i]);
        CHECK(harness_now_ms() - began >= strtoul(names[i], NULL, 10) - 20);
    }
    nothing_is_left(queue);
    harness_close(queue);
}

/* ---- dedupe ---- */

static void one_job_lives_for_each_key(void)
{
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS});
    cwist_job_item_t first = text_item("first");
    cwist_job_item_t second = text_item("second");
    first.dedupe_key = second.dedupe_key = "order 7: \xC3\xA9.*>";

    cwist_job_stored_t kept = store(queue, first);
    CHECK(!kept.duplicate);
    cwist_job_stored_t again = store(queue, second); /* while it is ready */
    CHECK(again.duplicate);
    CHECK_STR(kept.id, again.id);

    cwist_job_t *job = harness_claim(queue);
    CHECK_STR(kept.id, cwist_job_id(job));
    again = store(queue, second); /* while it is claimed */
    CHECK(again.duplicate);
    CHECK_STR(kept.id, again.id);
    CHECK_OK(cwist_job_queue_nack(queue, job));
    again = store(queue, second); /* after a retry */
    CHECK(again.duplicate);
    CHECK_STR(kept.id, again.id);

    job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_release(queue, job));
    again = store(queue, second); /* after a release */
    CHECK(again.duplicate);
    CHECK_STR(kept.id, again.id);

    job = harness_claim(queue); /* its lease lapses, and it stays the holder */
    cwist_job_destroy(job);
    job = harness_claim(queue);
    harness_payload_is(job, "first");
    again = store(queue, second);
    CHECK(again.duplicate);
    CHECK_STR(kept.id, again.id);
    CHECK_OK(cwist_job_queue_ack(queue, job));

    again = store(queue, second); /* the key is free */
    CHECK(!again.duplicate);
    CHECK(strcmp(kept.id, again.id) != 0);
    ack_next(queue, "second");
    nothing_is_left(queue);
    harness_close(queue);
}

static void a_dead_job_frees_its_key(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 1});
    cwist_job_item_t item = text_item("once");
    item.dedupe_key = "k";

    (void)store(queue, item);
    CHECK_OK(cwist_job_queue_nack(queue, harness_claim(queue)));
    CHECK_INT(1, harness_dead_count(queue));
    CHECK(!store(queue, item).duplicate);
    ack_next(queue, "once");
    harness_close(queue);
}

static void duplicates_in_a_batch_are_told_each(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_item_t items[5];
    cwist_job_stored_t stored[5];
    static const char *const keys[] = {"a", NULL, "a", "b", "b"};
    static const bool duplicate[] = {false, false, true, false, true};

    for (size_t i = 0; i < 5; i++) {
        items[i] = text_item("job");
        items[i].dedupe_key = keys[i];
    }
    CHECK_OK(cwist_job_queue_enqueue_many(queue, items, 5, stored));
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(CWIST_SUCCESS, stored[i].code);
        CHECK_INT(duplicate[i], stored[i].duplicate);
    }
    CHECK_STR(stored[0].id, stored[2].id);
    CHECK_STR(stored[3].id, stored[4].id);
    for (size_t i = 0; i < 3; i++) {
        ack_next(queue, "job");
    }
    nothing_is_left(queue);
    harness_close(queue);
}

static void a_delayed_job_holds_its_key(void)
{
    if (!harness_has_delays()) {
        return;
    }
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_item_t item = text_item("later");
    item.dedupe_key = "k";
    item.delay_ms = 1200;

    cwist_job_stored_t kept = store(queue, item);
    cwist_job_stored_t again = store(queue, item);
    CHECK(again.duplicate);
    CHECK_STR(kept.id, again.id);
    item.delay_ms = 0; /* also for a job that is to be ready at once */
    again = store(queue, item);
    CHECK(again.duplicate);
    CHECK_STR(kept.id, again.id);
    cwist_job_t *job = harness_claim(queue);
    CHECK_STR(kept.id, cwist_job_id(job));
    again = store(queue, item);
    CHECK(again.duplicate);
    CHECK_OK(cwist_job_queue_ack(queue, job));
    CHECK(!store(queue, item).duplicate);
    ack_next(queue, "later");
    nothing_is_left(queue);
    harness_close(queue);
}

typedef struct contender {
    cwist_job_queue_t *queue;
    unsigned won;
} contender;

static void contend(void *argument)
{
    contender *own = argument;

    for (int i = 0; i < 50; i++) {
        char key[8];
        cwist_job_item_t item = text_item("job");
        (void)snprintf(key, sizeof key, "%d", i);
        item.dedupe_key = key;
        own->won += store(own->queue, item).duplicate ? 0 : 1;
    }
}

static void many_producers_store_one_job_for_each_key(void)
{
    enum { THREADS = 4 };
    contender own[THREADS];
    harness_thread *threads[THREADS];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    unsigned won = 0;

    for (int i = 0; i < THREADS; i++) {
        own[i] = (contender){.queue = queue};
        threads[i] = harness_thread_start(contend, &own[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        harness_thread_join(threads[i]);
        won += own[i].won;
    }
    CHECK_INT(50, won);
    for (int i = 0; i < 50; i++) {
        ack_next(queue, "job");
    }
    nothing_is_left(queue);
    harness_close(queue);
}

/* ---- headers ---- */

static const cwist_job_header_t some_headers[] = {
    {"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
    {"Tenant", "caf\xC3\xA9: 7"},
    {"tenant", "other"},
    {"Empty", ""},
};

static void has_some_headers(const cwist_job_t *job)
{
    CHECK_INT(4, cwist_job_header_count(job));
    for (size_t i = 0; i < 4; i++) {
        CHECK_STR(some_headers[i].value, cwist_job_header_value(job, some_headers[i].name));
    }
}

static void headers_stay_with_the_job(void)
{
    const char *name = "?";
    const char *value = "?";
    cwist_job_queue_t *queue =
        harness_open((cwist_job_queue_opts_t){.visibility_timeout_ms = SHORT_MS});
    cwist_job_item_t item = text_item("job");
    item.headers = some_headers;
    item.header_count = 4;

    (void)store(queue, item);
    cwist_job_t *job = harness_claim(queue);
    has_some_headers(job);
    CHECK_STR(NULL, cwist_job_header_value(job, "TENANT"));
    CHECK_STR(NULL, cwist_job_header_value(job, NULL));
    CHECK(cwist_job_header_at(job, 0, &name, &value));
    CHECK_STR(value, cwist_job_header_value(job, name));
    CHECK(cwist_job_header_at(job, 3, NULL, NULL));
    CHECK(!cwist_job_header_at(job, 4, &name, &value));
    CHECK_STR(NULL, name);
    CHECK_STR(NULL, value);
    CHECK_OK(cwist_job_queue_nack(queue, job));
    job = harness_claim(queue);
    has_some_headers(job);
    CHECK_OK(cwist_job_queue_release(queue, job));
    job = harness_claim(queue);
    has_some_headers(job);
    cwist_job_destroy(job); /* it lapses */
    CHECK_INT(0, cwist_job_header_count(job));
    CHECK(!cwist_job_header_at(job, 0, &name, &value));
    CHECK_STR(NULL, cwist_job_header_value(job, "Tenant"));
    job = harness_claim(queue);
    has_some_headers(job);
    CHECK_INT(3, cwist_job_attempts(job)); /* the release spent none */
    CHECK_OK(cwist_job_queue_ack(queue, job));
    nothing_is_left(queue);
    harness_close(queue);
}

static void jobs_with_and_without_headers_share_a_batch(void)
{
    enum { JOBS = 40 };
    static cwist_job_item_t items[JOBS];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    for (size_t i = 0; i < JOBS; i++) {
        items[i] = text_item(i % 2 == 0 ? "even" : "odd");
        items[i].headers = some_headers;
        items[i].header_count = i % 2 == 0 ? 4 : 0;
    }
    CHECK_OK(cwist_job_queue_enqueue_many(queue, items, JOBS, NULL));
    for (size_t i = 0; i < JOBS; i++) {
        cwist_job_t *job = harness_claim(queue);
        harness_payload_is(job, i % 2 == 0 ? "even" : "odd");
        if (i % 2 == 0) {
            has_some_headers(job);
        } else {
            CHECK_INT(0, cwist_job_header_count(job));
        }
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    nothing_is_left(queue);
    harness_close(queue);
}

/* As many and as large as is allowed, through each move. */
static void headers_may_be_many_and_long(void)
{
    static char values[8][4097];
    static char names[CWIST_JOB_HEADERS_MAX][8];
    cwist_job_header_t headers[CWIST_JOB_HEADERS_MAX];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_item_t item = text_item("job");

    for (size_t i = 0; i < CWIST_JOB_HEADERS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu", i);
        if (i < 8) {
            memset(values[i], 'v', 4096);
        }
        headers[i] = (cwist_job_header_t){names[i], i < 8 ? values[i] : "short"};
    }
    item.headers = headers;
    item.header_count = CWIST_JOB_HEADERS_MAX;
    (void)store(queue, item);
    cwist_job_t *job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_nack(queue, job));
    job = harness_claim(queue);
    CHECK_INT(CWIST_JOB_HEADERS_MAX, cwist_job_header_count(job));
    for (size_t i = 0; i < CWIST_JOB_HEADERS_MAX; i++) {
        CHECK_STR(headers[i].value, cwist_job_header_value(job, names[i]));
    }
    CHECK_OK(cwist_job_queue_ack(queue, job));
    harness_close(queue);
}

/* ---- max_length ---- */

static void a_full_queue_refuses_and_drops_nothing(void)
{
    cwist_job_queue_t *queue = harness_open_ext((cwist_job_queue_opts_t){0},
                                                (cwist_job_queue_ext_opts_t){.max_length = 3});
    cwist_job_item_t item = text_item("more");
    cwist_job_stored_t stored;

    (void)store(queue, text_item("1"));
    (void)store(queue, text_item("2"));
    (void)store(queue, text_item("3"));
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_queue_enqueue_item(queue, &item, &stored));
    CHECK_INT(CWIST_ERROR_FULL, stored.code);
    CHECK_STR("", stored.id);
    cwist_job_t *job = harness_claim(queue); /* claimed jobs count too */
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_queue_enqueue_item(queue, &item, NULL));
    CHECK_OK(cwist_job_queue_nack(queue, job)); /* the library's own moves are never refused */
    job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_release(queue, job));
    job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_ack(queue, job));
    (void)store(queue, item);
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_queue_enqueue_item(queue, &item, NULL));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    }
    nothing_is_left(queue);
    harness_close(queue);
}

static void a_batch_fills_a_queue_up_to_its_length(void)
{
    cwist_job_queue_t *queue = harness_open_ext((cwist_job_queue_opts_t){0},
                                                (cwist_job_queue_ext_opts_t){.max_length = 3});
    cwist_job_item_t items[5];
    cwist_job_stored_t stored[5];

    for (size_t i = 0; i < 5; i++) {
        items[i] = text_item("job");
    }
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_queue_enqueue_many(queue, items, 5, stored));
    CHECK_TEXT("items[3]");
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(i < 3 ? CWIST_SUCCESS : CWIST_ERROR_FULL, stored[i].code);
    }
    for (size_t i = 0; i < 3; i++) {
        ack_next(queue, "job");
    }
    nothing_is_left(queue);
    harness_close(queue);
}

TEST_MAIN({"a_delayed_job_comes_when_it_is_due", a_delayed_job_comes_when_it_is_due},
          {"delayed_jobs_come_in_the_order_of_their_times",
           delayed_jobs_come_in_the_order_of_their_times},
          {"one_job_lives_for_each_key", one_job_lives_for_each_key},
          {"a_dead_job_frees_its_key", a_dead_job_frees_its_key},
          {"duplicates_in_a_batch_are_told_each", duplicates_in_a_batch_are_told_each},
          {"a_delayed_job_holds_its_key", a_delayed_job_holds_its_key},
          {"many_producers_store_one_job_for_each_key", many_producers_store_one_job_for_each_key},
          {"headers_stay_with_the_job", headers_stay_with_the_job},
          {"jobs_with_and_without_headers_share_a_batch",
           jobs_with_and_without_headers_share_a_batch},
          {"headers_may_be_many_and_long", headers_may_be_many_and_long},
          {"a_full_queue_refuses_and_drops_nothing", a_full_queue_refuses_and_drops_nothing},
          {"a_batch_fills_a_queue_up_to_its_length", a_batch_fills_a_queue_up_to_its_length})
