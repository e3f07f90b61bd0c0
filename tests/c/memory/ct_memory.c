/*
 * What is the engine memory:// alone: stores, their names and their ends; and every operation of
 * the seam once, exactly, since here nothing is slow.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/api.h"
#include "harness.h"

static int warnings;
static char last_warning[1024];

static void note_warning(void *context, int level, const char *text)
{
    (void)context;
    if (level == CWIST_JOB_LOG_WARNING) {
        warnings++;
        (void)snprintf(last_warning, sizeof last_warning, "%s", text);
    }
}

static cwist_job_conn_t *connect_to(const char *url)
{
    cwist_job_conn_t *conn = NULL;
    cwist_job_conn_opts_t opts;

    cwist_job_conn_opts_init(&opts);
    opts.log = note_warning;
    CHECK_OK(cwist_job_conn_open(&conn, url, &opts));
    return conn;
}

static cwist_job_queue_t *queue_on(cwist_job_conn_t *conn, const char *name)
{
    return harness_queue(conn, (cwist_job_queue_opts_t){.name = name});
}

static void put(cwist_job_queue_t *queue, const char *payload)
{
    CHECK_OK(cwist_job_queue_enqueue(queue, payload, strlen(payload), NULL));
}

static void take(cwist_job_queue_t *queue, const char *payload)
{
    cwist_job_t *job = harness_claim(queue);
    harness_payload_is(job, payload);
    CHECK_OK(cwist_job_queue_ack(queue, job));
}

static cwist_job_stats_t stats_of(cwist_job_queue_t *queue)
{
    cwist_job_stats_t stats = {.struct_size = sizeof stats};
    CHECK_OK(cwist_job_queue_stats(queue, &stats));
    return stats;
}

/* ---- stores ---- */

static void a_name_is_one_store_for_all_connections(void)
{
    cwist_job_conn_t *one = connect_to("memory://shared");
    cwist_job_conn_t *two = connect_to("memory://shared");
    cwist_job_conn_t *other = connect_to("memory://another");
    cwist_job_queue_t *sender = queue_on(one, "mail");
    cwist_job_queue_t *receiver = queue_on(two, "mail");
    cwist_job_queue_t *stranger = queue_on(other, "mail");
    cwist_job_queue_t *neighbour = queue_on(one, "post");

    put(sender, "hello");
    harness_no_job(stranger);
    harness_no_job(neighbour);
    take(receiver, "hello");
    cwist_job_queue_destroy(sender);
    cwist_job_queue_destroy(receiver);
    cwist_job_queue_destroy(stranger);
    cwist_job_queue_destroy(neighbour);
    cwist_job_conn_close(one);
    cwist_job_conn_close(two);
    cwist_job_conn_close(other);
    CHECK_INT(0, cwist_job_live_handles());
}

static void without_a_name_it_is_the_connections_own(void)
{
    cwist_job_conn_t *one = connect_to("memory://");
    cwist_job_conn_t *two = connect_to("memory://");
    cwist_job_queue_t *mine = queue_on(one, "mail");
    cwist_job_queue_t *also_mine = queue_on(one, "mail");
    cwist_job_queue_t *yours = queue_on(two, "mail");

    put(mine, "hello");
    harness_no_job(yours);
    take(also_mine, "hello");
    cwist_job_queue_destroy(mine);
    cwist_job_queue_destroy(also_mine);
    cwist_job_queue_destroy(yours);
    cwist_job_conn_close(one);
    cwist_job_conn_close(two);
}

static void a_store_goes_with_its_last_user(void)
{
    cwist_job_conn_t *conn = connect_to("memory://brief");
    cwist_job_queue_t *queue = queue_on(conn, "mail");
    put(queue, "a");
    put(queue, "b");
    put(queue, "c");
    cwist_job_t *held = harness_claim(queue);
    cwist_job_conn_close(conn); /* queues made from it go on, and so does the store */
    take(queue, "b");
    conn = connect_to("memory://brief");
    cwist_job_queue_destroy(queue);
    queue = queue_on(conn, "mail");
    take(queue, "c");
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    harness_payload_is(held, "a"); /* the last user */
    cwist_job_destroy(held);

    conn = connect_to("memory://brief");
    queue = queue_on(conn, "mail");
    harness_no_job(queue);
    CHECK_INT(0, stats_of(queue).claimed);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    CHECK_INT(0, cwist_job_live_handles());
}

static void it_is_no_server_of_another_engine(void)
{
    cwist_job_queue_opts_t opts = {.name = "mail"};
    cwist_job_conn_t *conn = connect_to("memory://");

    CHECK(cwist_job_queue_create_redis((cwist_redis_t *)(void *)conn, &opts) == NULL);
    CHECK_TEXT("the connection is to memory, not to redis");
    cwist_job_conn_close(conn);
}

/* ---- operations ---- */

static cwist_job_queue_t *open_with(cwist_job_conn_t *conn, cwist_job_queue_opts_t opts,
                                    uint64_t max_length)
{
    cwist_job_queue_t *queue = NULL;
    cwist_job_queue_ext_opts_t ext;

    cwist_job_queue_ext_opts_init(&ext);
    ext.max_length = max_length;
    opts.name = "mail";
    CHECK_OK(cwist_job_queue_open_ext(&queue, conn, &opts, &ext));
    return queue;
}

static void store(cwist_job_queue_t *queue, cwist_job_item_t item, bool duplicate, char *id)
{
    cwist_job_stored_t stored;
    item.payload = "x";
    item.len = 1;
    CHECK_OK(cwist_job_queue_enqueue_item(queue, &item, &stored));
    CHECK_INT(CWIST_SUCCESS, stored.code);
    CHECK_INT(duplicate, stored.duplicate);
    memcpy(id, stored.id, sizeof stored.id);
}

static void delayed_jobs_come_in_the_order_of_their_times(void)
{
    char ids[3][CWIST_JOB_ID_SIZE];
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(conn, (cwist_job_queue_opts_t){0}, 0);
    uint64_t start = harness_now_ms();

    store(queue, (cwist_job_item_t){.delay_ms = 300}, false, ids[2]);
    store(queue, (cwist_job_item_t){.delay_ms = 150}, false, ids[1]);
    store(queue, (cwist_job_item_t){0}, false, ids[0]);
    CHECK_INT(2, stats_of(queue).delayed);
    for (size_t i = 0; i < 3; i++) {
        cwist_job_t *job = harness_claim(queue);
        CHECK_STR(ids[i], cwist_job_id(job));
        CHECK(harness_now_ms() - start >= 150 * i);
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    CHECK(harness_now_ms() - start < 550);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

/* A key lives with its job, through every state but death. */
static void a_key_has_one_live_job(void)
{
    char first[CWIST_JOB_ID_SIZE];
    char other[CWIST_JOB_ID_SIZE];
    cwist_job_item_t keyed = {.dedupe_key = "user 7"};
    cwist_job_item_t later = {.dedupe_key = "user 7", .delay_ms = 60000};
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(
        conn, (cwist_job_queue_opts_t){.visibility_timeout_ms = 200, .max_retries = 9}, 0);

    store(queue, keyed, false, first);
    store(queue, keyed, true, other);
    CHECK_STR(first, other);
    cwist_job_t *job = harness_claim(queue);
    store(queue, keyed, true, other); /* claimed */
    CHECK_OK(cwist_job_queue_nack(queue, job));
    CHECK_OK(cwist_job_queue_release_after(queue, harness_claim(queue), 50));
    store(queue, keyed, true, other); /* delayed */
    cwist_job_destroy(harness_claim(queue));
    job = harness_claim(queue); /* lapsed */
    store(queue, later, true, other);
    CHECK_STR(first, other);
    CHECK_OK(cwist_job_queue_ack(queue, job));
    store(queue, later, false, other); /* free again */
    CHECK(strcmp(first, other) != 0);
    CHECK_OK(cwist_job_queue_purge(queue, NULL));
    store(queue, keyed, false, first);
    cwist_job_nack_opts_t dead = {.dead = true};
    CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &dead));
    store(queue, keyed, false, other); /* death freed it, and it is not taken back */
    CHECK_OK(cwist_job_dead_requeue(queue, first));
    CHECK_INT(2, stats_of(queue).ready);
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    store(queue, keyed, false, other);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void a_full_queue_refuses_and_drops_nothing(void)
{
    enum { MOST = 3 };
    cwist_job_item_t items[4] = {{.dedupe_key = "k"}, {.dedupe_key = "k"}, {0}, {0}};
    cwist_job_stored_t stored[4];
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(conn, (cwist_job_queue_opts_t){0}, MOST);
    cwist_job_item_t one = {.delay_ms = 60000};

    CHECK_OK(cwist_job_queue_enqueue_item(queue, &one, NULL)); /* delayed ones count */
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_queue_enqueue_all(queue, items, 4, stored));
    CHECK_TEXT("allowed: 3");
    CHECK_INT(0, stats_of(queue).ready);
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(CWIST_ERROR_FULL, stored[i].code);
        CHECK_STR("", stored[i].id);
    }
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_queue_enqueue_many(queue, items, 4, stored));
    CHECK_TEXT("items[3]");
    CHECK_INT(CWIST_SUCCESS, stored[0].code);
    CHECK(stored[1].duplicate);
    CHECK_STR(stored[0].id, stored[1].id);
    CHECK_INT(CWIST_SUCCESS, stored[2].code);
    CHECK_INT(CWIST_ERROR_FULL, stored[3].code);
    CHECK_OK(cwist_job_queue_enqueue_item(queue, &items[0], &stored[0])); /* stores nothing */
    CHECK(stored[0].duplicate);
    cwist_job_t *job = harness_claim(queue);
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_queue_enqueue_item(queue, &items[3], NULL));
    CHECK_OK(cwist_job_queue_nack(queue, job)); /* our own moves are not refused */
    CHECK_INT(2, stats_of(queue).ready);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void headers_live_as_long_as_the_job(void)
{
    cwist_job_header_t headers[] = {{"traceparent", "00-1-2-01"}, {"X-A", ""}};
    cwist_job_item_t item = {"x", 1, "kind", .headers = headers, .header_count = 2};
    cwist_job_nack_opts_t dead = {.dead = true, .reason = "not for us"};
    cwist_job_dead_page_t *page = NULL;
    cwist_job_stored_t stored;
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(conn, (cwist_job_queue_opts_t){.consumer = "w"}, 0);

    CHECK_OK(cwist_job_queue_enqueue_item(queue, &item, &stored));
    for (int round = 0; round < 2; round++) {
        cwist_job_t *job = harness_claim(queue);
        CHECK_INT(1, cwist_job_attempts(job));
        CHECK_INT(2, cwist_job_header_count(job));
        CHECK_STR("00-1-2-01", cwist_job_header_value(job, "traceparent"));
        CHECK_STR("", cwist_job_header_value(job, "X-A"));
        CHECK_OK(cwist_job_queue_nack_with(queue, job, &dead));
        CHECK_OK(cwist_job_dead_read(queue, stored.id, &page));
        const cwist_job_dead_letter_t *letter = cwist_job_dead_page_at(page, 0);
        CHECK_STR("kind", letter->type);
        CHECK_STR("rejected", letter->cause);
        CHECK_STR("not for us", letter->reason);
        CHECK_STR("w", letter->consumer);
        CHECK_INT(1, letter->attempts);
        CHECK(letter->first_ms > 1700000000000 && letter->died_ms >= letter->first_ms);
        CHECK_INT(1, letter->len);
        CHECK(memcmp(letter->payload, "x", 1) == 0);
        CHECK_INT(2, letter->header_count);
        CHECK_STR("traceparent", letter->headers[0].name);
        CHECK_STR("00-1-2-01", letter->headers[0].value);
        cwist_job_dead_page_free(page);
        CHECK_OK(cwist_job_dead_requeue(queue, stored.id)); /* its attempts start again */
        CHECK_CODE(CWIST_ERROR_NOT_FOUND, cwist_job_dead_requeue(queue, stored.id));
    }
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

/* Lists in pages of two while others come and go. */
static void pages_of_dead_letters_do_not_shift(void)
{
    char ids[6][CWIST_JOB_ID_SIZE];
    cwist_job_nack_opts_t dead = {.dead = true};
    cwist_job_dead_page_t *page = NULL;
    cwist_job_dead_page_t *next = NULL;
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(conn, (cwist_job_queue_opts_t){0}, 0);

    for (size_t i = 0; i < 6; i++) {
        store(queue, (cwist_job_item_t){0}, false, ids[i]);
        if (i < 5) {
            CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &dead));
        }
    }
    cwist_job_dead_query_t query = {.most = 2};
    CHECK_OK(cwist_job_dead_list(queue, &query, &page));
    CHECK_INT(2, cwist_job_dead_page_count(page));
    CHECK_STR(ids[4], cwist_job_dead_page_at(page, 0)->id);
    CHECK(cwist_job_dead_page_at(page, 0)->payload == NULL);
    CHECK_INT(1, cwist_job_dead_page_at(page, 0)->len);
    CHECK_OK(cwist_job_dead_purge(queue, ids[3])); /* the one of the mark */
    CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &dead));
    query.after = cwist_job_dead_page_mark(page);
    CHECK_OK(cwist_job_dead_list(queue, &query, &next));
    CHECK_INT(2, cwist_job_dead_page_count(next));
    CHECK_STR(ids[2], cwist_job_dead_page_at(next, 0)->id);
    CHECK_STR(ids[1], cwist_job_dead_page_at(next, 1)->id);
    cwist_job_dead_page_free(page);
    query.after = cwist_job_dead_page_mark(next);
    CHECK_OK(cwist_job_dead_list(queue, &query, &page));
    CHECK_INT(1, cwist_job_dead_page_count(page));
    CHECK_STR(NULL, cwist_job_dead_page_mark(page));
    cwist_job_dead_page_free(page);
    cwist_job_dead_page_free(next);
    query.after = "1234567";
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_dead_list(queue, &query, &page));

    uint64_t count = 0;
    CHECK_OK(cwist_job_dead_purge_all(queue, NULL, 3600000, &count));
    CHECK_INT(0, count);
    CHECK_OK(cwist_job_dead_requeue_all(queue, NULL, &count));
    CHECK_INT(5, count);
    cwist_job_t *job = harness_claim(queue);
    CHECK_STR(ids[0], cwist_job_id(job)); /* oldest first */
    CHECK_OK(cwist_job_queue_ack(queue, job));
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void statistics_are_exact(void)
{
    char id[CWIST_JOB_ID_SIZE];
    cwist_job_nack_opts_t dead = {.dead = true};
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(
        conn, (cwist_job_queue_opts_t){.consumer = "w", .visibility_timeout_ms = 10000}, 0);

    CHECK_INT(0, stats_of(queue).consumers);
    for (int i = 0; i < 4; i++) {
        store(queue, (cwist_job_item_t){0}, false, id);
    }
    store(queue, (cwist_job_item_t){.delay_ms = 60000}, false, id);
    CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &dead));
    cwist_job_t *held = harness_claim(queue);
    harness_pass_ms(30);
    cwist_job_stats_t stats = stats_of(queue);
    CHECK_INT(2, stats.ready);
    CHECK_INT(1, stats.claimed);
    CHECK_INT(1, stats.delayed);
    CHECK_INT(1, stats.dead);
    CHECK_INT(1, stats.consumers);
    CHECK_INT(5, stats.enqueued);
    CHECK(stats.oldest_ready_ms >= 30 && stats.oldest_ready_ms < 5000);
    CHECK(!stats.paused);
    uint64_t count = 0;
    CHECK_OK(cwist_job_queue_purge(queue, &count));
    CHECK_INT(3, count);
    stats = stats_of(queue);
    CHECK_INT(0, stats.ready + stats.delayed + stats.oldest_ready_ms);
    CHECK_INT(2, stats.claimed + stats.dead);
    CHECK_OK(cwist_job_queue_ack(queue, held));
    CHECK_INT(0, stats_of(queue).consumers);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

/* The visibility as a handle knows it from the store; 0: not yet. */
static uint64_t visibility_of(const cwist_job_queue_t *handle)
{
    const cwist_jq__queue *queue = cwist_jq__handle_peek(handle, CWIST_JQ_KIND_QUEUE);
    CHECK(queue != NULL);
    return atomic_load(&queue->server_visibility_ms);
}

/* Rule 13: only claims write it; one that brings another value warns once, and it holds for all. */
static void the_visibility_is_the_queues(void)
{
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *producer = open_with(conn, (cwist_job_queue_opts_t){0}, 0);
    cwist_job_queue_t *slow =
        open_with(conn, (cwist_job_queue_opts_t){.visibility_timeout_ms = 60000}, 0);
    cwist_job_queue_t *quick =
        open_with(conn, (cwist_job_queue_opts_t){.visibility_timeout_ms = 300}, 0);

    put(producer, "x");
    CHECK_INT(0, harness_dead_count(producer));
    CHECK_INT(0, visibility_of(producer));
    cwist_job_t *held = harness_claim(slow);
    put(producer, "y");
    CHECK_INT(60000, visibility_of(producer));
    CHECK_OK(cwist_job_queue_ack(quick, harness_claim(quick)));
    CHECK_INT(1, warnings);
    harness_check_contains(__FILE__, __LINE__, "60000 ms to 300 ms", last_warning);
    cwist_job_t *given = harness_claim(quick); /* the new value holds for what is out already */
    CHECK_INT(2, cwist_job_attempts(given));
    CHECK_CODE(CWIST_ERROR_LEASE_LOST, cwist_job_queue_ack(slow, held));
    CHECK_INT(300, visibility_of(slow));
    CHECK_OK(cwist_job_queue_ack(quick, given));
    harness_no_job(slow); /* nobody sets it back, and nobody says it again */
    harness_no_job(quick);
    CHECK_INT(300, visibility_of(slow));
    CHECK_INT(1, warnings);
    cwist_job_queue_destroy(producer);
    cwist_job_queue_destroy(slow);
    cwist_job_queue_destroy(quick);
    cwist_job_conn_close(conn);
}

/* A letter says who let the last lease run out, not who found the job. */
static void a_lapsed_job_remembers_who_had_it(void)
{
    cwist_job_dead_page_t *page = NULL;
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_opts_t opts = {.visibility_timeout_ms = 100, .max_retries = 1};
    opts.consumer = "victim";
    cwist_job_queue_t *victim = open_with(conn, opts, 0);
    opts.consumer = "finder";
    cwist_job_queue_t *finder = open_with(conn, opts, 0);
    cwist_job_t *job = NULL;

    put(victim, "x");
    cwist_job_destroy(harness_claim(victim));
    cwist_job_queue_destroy(victim);
    CHECK_INT(1, stats_of(finder).consumers); /* it holds the job */
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(finder, 400, &job));
    CHECK_INT(0, stats_of(finder).consumers);
    CHECK_OK(cwist_job_dead_list(finder, NULL, &page));
    const cwist_job_dead_letter_t *letter = cwist_job_dead_page_at(page, 0);
    CHECK_STR("lease-expired", letter->cause);
    CHECK_STR("victim", letter->consumer);
    CHECK_INT(1, letter->attempts);
    cwist_job_dead_page_free(page);
    cwist_job_queue_destroy(finder);
    cwist_job_conn_close(conn);
}

static atomic_bool arrived;

static void wait_for_a_job(void *queue)
{
    take(queue, "at last");
    atomic_store(&arrived, true);
}

static void a_paused_queue_gives_no_job_until_it_goes_on(void)
{
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(conn, (cwist_job_queue_opts_t){0}, 0);
    cwist_job_queue_t *other = open_with(conn, (cwist_job_queue_opts_t){0}, 0);
    harness_thread *blocked = harness_thread_start(wait_for_a_job, queue);

    while (stats_of(queue).consumers == 0) {
        harness_pass_ms(1);
    }
    CHECK_OK(cwist_job_queue_pause(other));
    CHECK(stats_of(queue).paused);
    put(queue, "at last");
    harness_no_job(other);
    harness_pass_ms(250);
    CHECK(!atomic_load(&arrived));
    uint64_t start = harness_now_ms();
    CHECK_OK(cwist_job_queue_resume(other));
    harness_thread_join(blocked);
    CHECK(harness_now_ms() - start < 80); /* it is woken, and does not find out by itself */
    cwist_job_queue_destroy(queue);
    cwist_job_queue_destroy(other);
    cwist_job_conn_close(conn);
}

/* ---- many ---- */

static void many_jobs_are_no_burden(void)
{
    enum { BATCHES = 200, JOBS = BATCHES * CWIST_JOB_BATCH_MAX };
    static cwist_job_item_t items[CWIST_JOB_BATCH_MAX];
    static cwist_job_t *jobs[CWIST_JOB_BATCH_MAX];
    cwist_job_conn_t *conn = connect_to("memory://");
    cwist_job_queue_t *queue = open_with(conn, (cwist_job_queue_opts_t){.max_retries = 1}, 0);
    uint64_t start = harness_now_ms();
    uint64_t count = 0;
    size_t got = 0;

    for (int i = 0; i < BATCHES; i++) {
        CHECK_OK(cwist_job_queue_enqueue_many(queue, items, CWIST_JOB_BATCH_MAX, NULL));
    }
    for (int i = 0; i < BATCHES; i++) {
        CHECK_OK(cwist_job_queue_claim_many(queue, CWIST_JOB_BATCH_MAX, 0, jobs, &got));
        CHECK_INT(CWIST_JOB_BATCH_MAX, got);
        CHECK_OK(cwist_job_queue_nack_many(queue, jobs, got, NULL));
    }
    CHECK_OK(cwist_job_dead_requeue_all(queue, NULL, &count));
    CHECK_INT(JOBS, count);
    CHECK_OK(cwist_job_queue_purge(queue, &count));
    CHECK_INT(JOBS, count);
    CHECK(harness_now_ms() - start < 30000);
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

TEST_MAIN({"a_name_is_one_store_for_all_connections", a_name_is_one_store_for_all_connections},
          {"without_a_name_it_is_the_connections_own", without_a_name_it_is_the_connections_own},
          {"a_store_goes_with_its_last_user", a_store_goes_with_its_last_user},
          {"it_is_no_server_of_another_engine", it_is_no_server_of_another_engine},
          {"delayed_jobs_come_in_the_order_of_their_times",
           delayed_jobs_come_in_the_order_of_their_times},
          {"a_key_has_one_live_job", a_key_has_one_live_job},
          {"a_full_queue_refuses_and_drops_nothing", a_full_queue_refuses_and_drops_nothing},
          {"headers_live_as_long_as_the_job", headers_live_as_long_as_the_job},
          {"pages_of_dead_letters_do_not_shift", pages_of_dead_letters_do_not_shift},
          {"statistics_are_exact", statistics_are_exact},
          {"the_visibility_is_the_queues", the_visibility_is_the_queues},
          {"a_lapsed_job_remembers_who_had_it", a_lapsed_job_remembers_who_had_it},
          {"a_paused_queue_gives_no_job_until_it_goes_on",
           a_paused_queue_gives_no_job_until_it_goes_on},
          {"many_jobs_are_no_burden", many_jobs_are_no_burden})
