/* The tools of the engine in memory: tables, the heap, the array of dead letters. */
#include <stdlib.h>

#include "harness.h"
#include "memory/memory.h"

enum { MANY = 2000 };

static cwist_jq__memory_job jobs[MANY];

/* ---- tables ---- */

static void a_table_finds_all_of_a_hash(void)
{
    cwist_jq__memory_table table = {0};

    CHECK(cwist_jq__memory_table_first(&table, 0) == NULL);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK(cwist_jq__memory_table_reserve(&table));
        cwist_jq__memory_table_add(&table, &jobs[i].by_id, i / 2 * 1000);
    }
    for (uint64_t i = 0; i < MANY / 2; i++) {
        cwist_jq__memory_link *one = cwist_jq__memory_table_first(&table, i * 1000);
        CHECK(one != NULL);
        cwist_jq__memory_link *other = cwist_jq__memory_table_next(one);
        CHECK(other != NULL && other != one);
        CHECK(cwist_jq__memory_table_next(other) == NULL);
        cwist_jq__memory_table_remove(&table, i % 2 == 0 ? one : other);
        one = cwist_jq__memory_table_first(&table, i * 1000);
        CHECK(one != NULL && cwist_jq__memory_table_next(one) == NULL);
        cwist_jq__memory_table_remove(&table, one);
        CHECK(cwist_jq__memory_table_first(&table, i * 1000) == NULL);
    }
    CHECK_INT(0, table.count);
    cwist_jq__memory_table_clear(&table);
}

/* ---- the heap ---- */

static void add_to_heap(cwist_jq__memory_heap *heap, size_t i, uint64_t moment)
{
    jobs[i].by_id.hash = i + 1;
    jobs[i].moment = moment;
    CHECK(cwist_jq__memory_heap_reserve(heap));
    cwist_jq__memory_heap_add(heap, &jobs[i]);
}

static void take_in_order(cwist_jq__memory_heap *heap)
{
    const cwist_jq__memory_job *last = NULL;

    while (heap->count != 0) {
        cwist_jq__memory_job *first = heap->at[0];
        CHECK(last == NULL || last->moment < first->moment ||
              (last->moment == first->moment && last->by_id.hash < first->by_id.hash));
        cwist_jq__memory_heap_remove(heap, first);
        last = first;
    }
}

static void a_heap_gives_what_is_due_first(void)
{
    cwist_jq__memory_heap heap = {0};
    unsigned seed = 1;

    for (size_t i = 0; i < MANY; i++) {
        seed = seed * 1103515245u + 12345u;
        add_to_heap(&heap, i, seed >> 16 & 0xFFu); /* many are due at the same moment */
    }
    for (size_t i = 0; i < MANY; i += 3) {
        CHECK(heap.at[jobs[i].place] == &jobs[i]);
        cwist_jq__memory_heap_remove(&heap, &jobs[i]);
    }
    CHECK_INT(MANY - (MANY + 2) / 3, heap.count);
    take_in_order(&heap);
    cwist_jq__free(heap.at);
}

/* ---- dead letters ---- */

static void add_letters(cwist_jq__memory_letters *letters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK(cwist_jq__memory_letters_reserve(letters));
        cwist_jq__memory_letter *letter = cwist_jq__memory_letters_add(letters);
        letter->job = &jobs[i];
        CHECK_INT(letters->last_number, letter->number);
    }
}

static void remove_letter(cwist_jq__memory_letters *letters, uint64_t number)
{
    cwist_jq__memory_letter *letter = cwist_jq__memory_letters_find(letters, number);
    CHECK(letter != NULL);
    cwist_jq__memory_letters_remove(letters, letter);
    CHECK(cwist_jq__memory_letters_find(letters, number) == NULL);
}

static void number_is(uint64_t want, const cwist_jq__memory_letter *letter)
{
    CHECK_INT(want, letter != NULL ? letter->number : 0);
}

static void letters_that_go_shift_no_others(void)
{
    cwist_jq__memory_letters letters = {0};

    CHECK(cwist_jq__memory_letters_after(&letters, 0) == NULL);
    CHECK(cwist_jq__memory_letters_before(&letters, UINT64_MAX) == NULL);
    add_letters(&letters, MANY);
    for (uint64_t number = 1; number <= MANY; number++) {
        if (number % 5 != 0) {
            remove_letter(&letters, number);
        }
    }
    CHECK_INT(MANY / 5, letters.count);
    CHECK(letters.end - letters.begin < MANY); /* the holes were closed on the way */
    number_is(5, cwist_jq__memory_letters_after(&letters, 0));
    number_is(10, cwist_jq__memory_letters_after(&letters, 5));
    number_is(10, cwist_jq__memory_letters_after(&letters, 7)); /* that one is gone */
    number_is(5, cwist_jq__memory_letters_before(&letters, 7));
    number_is(0, cwist_jq__memory_letters_before(&letters, 5));
    number_is(MANY, cwist_jq__memory_letters_before(&letters, UINT64_MAX));
    number_is(0, cwist_jq__memory_letters_after(&letters, MANY));
    add_letters(&letters, 1);
    number_is(MANY + 1, cwist_jq__memory_letters_after(&letters, MANY));
    cwist_jq__free(letters.at);
}

static void letters_that_come_and_go_need_no_more_room(void)
{
    cwist_jq__memory_letters letters = {0};

    for (uint64_t number = 1; number <= 100 * MANY; number++) {
        add_letters(&letters, 1);
        remove_letter(&letters, number);
    }
    CHECK(letters.room <= 64);
    cwist_jq__free(letters.at);
}

static void numbers_are_read_in_one_form_only(void)
{
    static const char *const bad[] = {"",   "0",  "01", "-1",  "+1",
                                      "1 ", " 1", "1x", "1-0", "12345678901234567890"};
    uint64_t number = 0;

    CHECK(cwist_jq__memory_number("9223372036854775807", 19, &number));
    CHECK(number == INT64_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!cwist_jq__memory_number(bad[i], strlen(bad[i]), &number));
    }
}

TEST_MAIN({"a_table_finds_all_of_a_hash", a_table_finds_all_of_a_hash},
          {"a_heap_gives_what_is_due_first", a_heap_gives_what_is_due_first},
          {"letters_that_go_shift_no_others", letters_that_go_shift_no_others},
          {"letters_that_come_and_go_need_no_more_room",
           letters_that_come_and_go_need_no_more_room},
          {"numbers_are_read_in_one_form_only", numbers_are_read_in_one_form_only})
