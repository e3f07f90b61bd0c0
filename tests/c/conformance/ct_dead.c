/* Dead letters: list, read, requeue, purge (SPEC rule 13). */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static char texts[600][8]; /* "0", "1", … */

/* Makes dead letters, numbered from `first` on in the order of their deaths. */
static void bury(cwist_job_queue_t *queue, size_t first, size_t count, const char *type)
{
    static const cwist_job_header_t header = {"Trace", "t1"};
    cwist_job_nack_opts_t reject = {.dead = true, .reason = "said so"};

    for (size_t i = first; i < first + count; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%zu", i);
        cwist_job_item_t item = {.payload = texts[i],
                                 .len = strlen(texts[i]),
                                 .type = type,
                                 .headers = &header,
                                 .header_count = 1};
        CHECK_OK(cwist_job_queue_enqueue_item(queue, &item, NULL));
        CHECK_OK(cwist_job_queue_nack_with(queue, harness_claim(queue), &reject));
    }
}

static cwist_job_dead_page_t *list(cwist_job_queue_t *queue, cwist_job_dead_query_t query)
{
    cwist_job_dead_page_t *page = NULL;

    CHECK_OK(cwist_job_dead_list(queue, &query, &page));
    CHECK(page != NULL);
    return page;
}

/* The number of a letter, read by its id. */
static unsigned long number_of(cwist_job_queue_t *queue, const char *id)
{
    cwist_job_dead_page_t *page = NULL;
    char text[8] = "";

    CHECK_OK(cwist_job_dead_read(queue, id, &page));
    CHECK_INT(1, cwist_job_dead_page_count(page));
    const cwist_job_dead_letter_t *letter = cwist_job_dead_page_at(page, 0);
    CHECK_STR(id, letter->id);
    CHECK(letter->payload != NULL && letter->len < sizeof text);
    memcpy(text, letter->payload, letter->len);
    cwist_job_dead_page_free(page);
    return strtoul(text, NULL, 10);
}

/* Claims and acks so many jobs, and no more are there. */
static void drain(cwist_job_queue_t *queue, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cwist_job_t *job = harness_claim(queue);
        CHECK_INT(1, cwist_job_attempts(job));
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    harness_no_job(queue);
}

/* ---- list and read ---- */

static void a_letter_tells_all_about_its_job(void)
{
    cwist_job_dead_page_t *page = NULL;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.consumer = "worker-1"});

    bury(queue, 0, 1, "kind");
    page = list(queue, (cwist_job_dead_query_t){0});
    CHECK_INT(1, cwist_job_dead_page_count(page));
    CHECK(cwist_job_dead_page_at(page, 1) == NULL);
    CHECK_STR(NULL, cwist_job_dead_page_mark(page));
    const cwist_job_dead_letter_t *letter = cwist_job_dead_page_at(page, 0);
    CHECK_STR("kind", letter->type);
    CHECK_STR("rejected", letter->cause);
    CHECK_STR("said so", letter->reason);
    CHECK_STR("worker-1", letter->consumer);
    CHECK_INT(1, letter->attempts);
    CHECK_INT(1, letter->len);
    CHECK(letter->payload == NULL);
    CHECK_INT(1, letter->header_count);
    CHECK_STR("Trace", letter->headers[0].name);
    CHECK_STR("t1", letter->headers[0].value);
    CHECK(letter->died_ms >= letter->first_ms);
    CHECK(letter->first_ms > 1600000000000);
    CHECK_INT(0, number_of(queue, letter->id));
    cwist_job_dead_page_free(page);
    CHECK_INT(1, harness_dead_count(queue)); /* reading changes nothing */
    harness_close(queue);
}

static void an_empty_list_is_an_empty_page(void)
{
    cwist_job_dead_page_t *page = NULL;
    uint64_t count = 9;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    CHECK_OK(cwist_job_dead_list(queue, NULL, &page));
    CHECK_INT(0, cwist_job_dead_page_count(page));
    CHECK_STR(NULL, cwist_job_dead_page_mark(page));
    cwist_job_dead_page_free(page);
    CHECK_CODE(CWIST_ERROR_NOT_FOUND, cwist_job_dead_read(queue, "12345-0", &page));
    CHECK(page == NULL);
    CHECK_CODE(CWIST_ERROR_NOT_FOUND, cwist_job_dead_requeue(queue, "12345"));
    CHECK_CODE(CWIST_ERROR_NOT_FOUND, cwist_job_dead_purge(queue, "12345"));
    CHECK_OK(cwist_job_dead_requeue_all(queue, NULL, &count));
    CHECK_INT(0, count);
    count = 9;
    CHECK_OK(cwist_job_dead_purge_all(queue, NULL, 1000, &count));
    CHECK_INT(0, count);
    harness_close(queue);
}

static void wrong_queries_are_refused(void)
{
    cwist_job_dead_page_t *page = NULL;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_job_dead_query_t wrong[] = {{.most = CWIST_JOB_BATCH_MAX + 1}, {.type = "a\nb"}};

    bury(queue, 0, 1, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_dead_list(queue, &wrong[i], &page));
        CHECK(page == NULL);
        CHECK_TEXT("allowed");
    }
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM,
               cwist_job_dead_list(queue, &(cwist_job_dead_query_t){.after = "no mark"}, &page));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_dead_list(queue, NULL, NULL));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_dead_read(queue, NULL, &page));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_dead_read(queue, "", &page));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_dead_requeue_all(queue, "a\nb", NULL));
    CHECK_CODE(CWIST_ERROR_INVALID_PARAM, cwist_job_dead_purge_all(queue, "\xff", 0, NULL));
    CHECK_INT(1, harness_dead_count(queue));
    harness_close(queue);
}

/* Reads all letters in pages of a size; they are numbered downwards or upwards. */
static void pages_are_complete(cwist_job_queue_t *queue, size_t most, bool oldest_first,
                               size_t count)
{
    char mark[512] = "";
    size_t seen = 0;
    bool more = true;

    while (more) {
        cwist_job_dead_page_t *page =
            list(queue, (cwist_job_dead_query_t){.most = most,
                                                 .oldest_first = oldest_first,
                                                 .after = mark[0] != '\0' ? mark : NULL});
        CHECK(cwist_job_dead_page_count(page) <= most);
        for (size_t i = 0; i < cwist_job_dead_page_count(page); i++) {
            const char *id = cwist_job_dead_page_at(page, i)->id;
            CHECK_INT(oldest_first ? seen : count - 1 - seen, number_of(queue, id));
            seen++;
        }
        more = cwist_job_dead_page_mark(page) != NULL;
        if (more) {
            CHECK(strlen(cwist_job_dead_page_mark(page)) < sizeof mark);
            (void)snprintf(mark, sizeof mark, "%s", cwist_job_dead_page_mark(page));
        }
        cwist_job_dead_page_free(page);
    }
    CHECK_INT(count, seen);
}

static void pages_follow_each_other_in_both_orders(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    bury(queue, 0, 25, NULL);
    for (int oldest_first = 0; oldest_first < 2; oldest_first++) {
        pages_are_complete(queue, 10, oldest_first == 1, 25);
        pages_are_complete(queue, 25, oldest_first == 1, 25);
        pages_are_complete(queue, 1000, oldest_first == 1, 25);
        pages_are_complete(queue, 1, oldest_first == 1, 25);
    }
    harness_close(queue);
}

/* Letters that come or go between two pages shift no others. */
static void pages_hold_still_while_letters_come_and_go(void)
{
    for (int oldest_first = 0; oldest_first < 2; oldest_first++) {
        cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
        cwist_job_dead_query_t query = {.most = 4, .oldest_first = oldest_first == 1};

        bury(queue, 0, 10, NULL);
        cwist_job_dead_page_t *first = list(queue, query);
        bury(queue, 10, 2, NULL);
        CHECK_OK(cwist_job_dead_purge(queue, cwist_job_dead_page_at(first, 1)->id));
        CHECK_OK(cwist_job_dead_purge(queue, cwist_job_dead_page_at(first, 3)->id));
        query.after = cwist_job_dead_page_mark(first);
        cwist_job_dead_page_t *second = list(queue, query);
        CHECK_INT(4, cwist_job_dead_page_count(second));
        for (size_t i = 0; i < 4; i++) {
            CHECK_INT(oldest_first == 1 ? 4 + i : 5 - i,
                      number_of(queue, cwist_job_dead_page_at(second, i)->id));
        }
        cwist_job_dead_page_free(first);
        cwist_job_dead_page_free(second);
        harness_close(queue);
    }
}

static void a_list_may_be_of_one_type(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    bury(queue, 0, 3, "mail");
    bury(queue, 3, 300, "sms"); /* more than one piece lies between */
    bury(queue, 303, 2, NULL);
    bury(queue, 305, 2, "mail");
    cwist_job_dead_page_t *page =
        list(queue, (cwist_job_dead_query_t){.type = "mail", .oldest_first = true, .most = 4});
    CHECK_INT(4, cwist_job_dead_page_count(page));
    CHECK_INT(305, number_of(queue, cwist_job_dead_page_at(page, 3)->id));
    CHECK(cwist_job_dead_page_mark(page) != NULL);
    cwist_job_dead_page_t *rest = list(
        queue, (cwist_job_dead_query_t){
                   .type = "mail", .oldest_first = true, .after = cwist_job_dead_page_mark(page)});
    CHECK_INT(1, cwist_job_dead_page_count(rest));
    CHECK_STR(NULL, cwist_job_dead_page_mark(rest));
    cwist_job_dead_page_free(rest);
    cwist_job_dead_page_free(page);
    page = list(queue, (cwist_job_dead_query_t){.type = ""});
    CHECK_INT(2, cwist_job_dead_page_count(page));
    cwist_job_dead_page_free(page);
    page = list(queue, (cwist_job_dead_query_t){.type = "none such"});
    CHECK_INT(0, cwist_job_dead_page_count(page));
    CHECK_STR(NULL, cwist_job_dead_page_mark(page));
    cwist_job_dead_page_free(page);
    harness_close(queue);
}

/* ---- requeue ---- */

/* X04 */
static void a_requeued_job_begins_anew(void)
{
    char id[CWIST_JOB_ID_SIZE];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){.max_retries = 1});

    bury(queue, 0, 2, "kind");
    cwist_job_dead_page_t *page = list(queue, (cwist_job_dead_query_t){.oldest_first = true});
    (void)snprintf(id, sizeof id, "%s", cwist_job_dead_page_at(page, 0)->id);
    cwist_job_dead_page_free(page);
    CHECK_OK(cwist_job_dead_requeue(queue, id));
    CHECK_CODE(CWIST_ERROR_NOT_FOUND, cwist_job_dead_requeue(queue, id));
    CHECK_TEXT(id);
    cwist_job_t *job = harness_claim(queue);
    CHECK_STR(id, cwist_job_id(job));
    CHECK_INT(1, cwist_job_attempts(job));
    CHECK_STR("kind", cwist_job_type(job));
    CHECK_STR("t1", cwist_job_header_value(job, "Trace"));
    harness_payload_is(job, "0");
    harness_no_job(queue);
    CHECK_INT(1, harness_dead_count(queue));
    CHECK_OK(cwist_job_queue_nack(queue, job)); /* its last delivery again */
    CHECK_INT(2, harness_dead_count(queue));
    CHECK_OK(cwist_job_dead_requeue(queue, id));
    drain(queue, 1);
    CHECK_INT(1, harness_dead_count(queue));
    harness_close(queue);
}

static void all_are_requeued_or_those_of_a_type(void)
{
    uint64_t count = 0;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    for (size_t i = 0; i < 6; i++) {
        bury(queue, i, 1, i % 2 == 0 ? "even" : NULL);
    }
    CHECK_OK(cwist_job_dead_requeue_all(queue, "none such", &count));
    CHECK_INT(0, count);
    CHECK_OK(cwist_job_dead_requeue_all(queue, "even", &count));
    CHECK_INT(3, count);
    CHECK_INT(3, harness_dead_count(queue));
    for (size_t i = 0; i < 6; i += 2) { /* the oldest first */
        cwist_job_t *job = harness_claim(queue);
        harness_payload_is(job, texts[i]);
        CHECK_OK(cwist_job_queue_ack(queue, job));
    }
    CHECK_OK(cwist_job_dead_requeue_all(queue, "", &count));
    CHECK_INT(3, count);
    CHECK_INT(0, harness_dead_count(queue));
    drain(queue, 3);
    harness_close(queue);
}

static void many_pieces_are_requeued(void)
{
    uint64_t count = 0;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    bury(queue, 0, 530, NULL);
    CHECK_OK(cwist_job_dead_requeue_all(queue, NULL, &count));
    CHECK_INT(530, count);
    CHECK_INT(0, harness_dead_count(queue));
    drain(queue, 530);
    harness_close(queue);
}

typedef struct operator_at_work {
    cwist_job_queue_t *queue;
    uint64_t moved;
} operator_at_work;

static void requeue_all(void *argument)
{
    operator_at_work *own = argument;

    CHECK_OK(cwist_job_dead_requeue_all(own->queue, NULL, &own->moved));
}

/* X05: two operators at once double no job. */
static void operators_at_once_double_no_job(void)
{
    enum { OPERATORS = 3, LETTERS = 300 };
    operator_at_work own[OPERATORS];
    harness_thread *threads[OPERATORS];
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    uint64_t moved = 0;

    bury(queue, 0, LETTERS, NULL);
    for (int i = 0; i < OPERATORS; i++) {
        own[i] = (operator_at_work){.queue = queue};
        threads[i] = harness_thread_start(requeue_all, &own[i]);
    }
    for (int i = 0; i < OPERATORS; i++) {
        harness_thread_join(threads[i]);
        moved += own[i].moved;
    }
    CHECK_INT(LETTERS, moved);
    CHECK_INT(0, harness_dead_count(queue));
    drain(queue, LETTERS);
    harness_close(queue);
}

static void a_full_queue_takes_no_letters(void)
{
    uint64_t count = 9;
    cwist_job_queue_t *queue = harness_open_ext((cwist_job_queue_opts_t){0},
                                                (cwist_job_queue_ext_opts_t){.max_length = 2});

    bury(queue, 0, 3, NULL);
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_dead_requeue_all(queue, NULL, &count));
    CHECK_INT(2, count);
    CHECK_INT(1, harness_dead_count(queue));
    cwist_job_dead_page_t *page = list(queue, (cwist_job_dead_query_t){0});
    const char *id = cwist_job_dead_page_at(page, 0)->id;
    CHECK_CODE(CWIST_ERROR_FULL, cwist_job_dead_requeue(queue, id));
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    CHECK_OK(cwist_job_dead_requeue(queue, id));
    cwist_job_dead_page_free(page);
    drain(queue, 2);
    CHECK_INT(0, harness_dead_count(queue));
    harness_close(queue);
}

/* ---- purge ---- */

static void one_letter_is_purged(void)
{
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    bury(queue, 0, 3, NULL);
    cwist_job_dead_page_t *page = list(queue, (cwist_job_dead_query_t){0});
    const char *id = cwist_job_dead_page_at(page, 1)->id;
    CHECK_OK(cwist_job_dead_purge(queue, id));
    CHECK_CODE(CWIST_ERROR_NOT_FOUND, cwist_job_dead_purge(queue, id));
    CHECK_CODE(CWIST_ERROR_NOT_FOUND, cwist_job_dead_requeue(queue, id));
    CHECK_INT(2, harness_dead_count(queue));
    cwist_job_dead_page_free(page);
    harness_no_job(queue);
    harness_close(queue);
}

static void all_are_purged_or_those_of_a_type(void)
{
    uint64_t count = 0;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    bury(queue, 0, 2, "a");
    bury(queue, 2, 3, "b");
    CHECK_OK(cwist_job_dead_purge_all(queue, "a", 0, &count));
    CHECK_INT(2, count);
    CHECK_INT(3, harness_dead_count(queue));
    CHECK_OK(cwist_job_dead_purge_all(queue, NULL, 0, NULL));
    CHECK_INT(0, harness_dead_count(queue));
    harness_no_job(queue);
    harness_close(queue);
}

static void only_old_letters_are_purged(void)
{
    uint64_t count = 0;
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});

    bury(queue, 0, 2, NULL);
    harness_pass_ms(1100);
    bury(queue, 2, 1, NULL);
    CHECK_OK(cwist_job_dead_purge_all(queue, NULL, 3600000, &count));
    CHECK_INT(0, count);
    CHECK_OK(cwist_job_dead_purge_all(queue, NULL, UINT64_MAX, &count));
    CHECK_INT(0, count);
    CHECK_OK(cwist_job_dead_purge_all(queue, NULL, 1000, &count));
    CHECK_INT(2, count);
    cwist_job_dead_page_t *page = list(queue, (cwist_job_dead_query_t){0});
    CHECK_INT(1, cwist_job_dead_page_count(page));
    CHECK_INT(2, number_of(queue, cwist_job_dead_page_at(page, 0)->id));
    cwist_job_dead_page_free(page);
    harness_close(queue);
}

TEST_MAIN({"a_letter_tells_all_about_its_job", a_letter_tells_all_about_its_job},
          {"an_empty_list_is_an_empty_page", an_empty_list_is_an_empty_page},
          {"wrong_queries_are_refused", wrong_queries_are_refused},
          {"pages_follow_each_other_in_both_orders", pages_follow_each_other_in_both_orders},
          {"pages_hold_still_while_letters_come_and_go",
           pages_hold_still_while_letters_come_and_go},
          {"a_list_may_be_of_one_type", a_list_may_be_of_one_type},
          {"a_requeued_job_begins_anew", a_requeued_job_begins_anew},
          {"all_are_requeued_or_those_of_a_type", all_are_requeued_or_those_of_a_type},
          {"many_pieces_are_requeued", many_pieces_are_requeued},
          {"operators_at_once_double_no_job", operators_at_once_double_no_job},
          {"a_full_queue_takes_no_letters", a_full_queue_takes_no_letters},
          {"one_letter_is_purged", one_letter_is_purged},
          {"all_are_purged_or_those_of_a_type", all_are_purged_or_those_of_a_type},
          {"only_old_letters_are_purged", only_old_letters_are_purged})
