/* Pages of dead letters: each letter is one block of memory. */
#include <string.h>

#include "core/letters.h"

#define FIRST_ROOM 16

static size_t text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static size_t block_size(const cwist_jq__letter *from)
{
    const cwist_job_dead_letter_t *told = &from->told;
    size_t size = sizeof *from + told->header_count * sizeof(cwist_job_header_t);

    size += text_size(told->id) + text_size(told->type) + text_size(told->cause);
    size += text_size(told->reason) + text_size(told->consumer) + text_size(from->mark);
    for (size_t i = 0; i < told->header_count; i++) {
        size += text_size(told->headers[i].name) + text_size(told->headers[i].value);
    }
    return size + from->place_len + (told->payload != NULL ? told->len : 0);
}

/* Copies bytes to *at, which moves on behind them. */
static char *put(char **at, const void *bytes, size_t len)
{
    char *begin = *at;

    if (len != 0) {
        memcpy(begin, bytes, len);
    }
    *at += len;
    return begin;
}

static const char *put_text(char **at, const char *text)
{
    return text != NULL ? put(at, text, strlen(text) + 1) : NULL;
}

/* Fills a block in; the table of the headers has its place right behind the letter. */
static void copy(cwist_jq__letter *to, const cwist_jq__letter *from)
{
    const cwist_job_dead_letter_t *told = &from->told;
    cwist_job_header_t *table = (cwist_job_header_t *)(to + 1);
    char *at = (char *)(table + told->header_count);

    *to = *from;
    to->told.headers = told->header_count != 0 ? table : NULL;
    for (size_t i = 0; i < told->header_count; i++) {
        table[i].name = put_text(&at, told->headers[i].name);
        table[i].value = put_text(&at, told->headers[i].value);
    }
    to->told.id = put_text(&at, told->id);
    to->told.type = put_text(&at, told->type);
    to->told.cause = put_text(&at, told->cause);
    to->told.reason = put_text(&at, told->reason);
    to->told.consumer = put_text(&at, told->consumer);
    to->mark = put_text(&at, from->mark);
    to->place = put(&at, from->place, from->place_len);
    to->told.payload = told->payload != NULL ? put(&at, told->payload, told->len) : NULL;
}

static bool make_room(cwist_job_dead_page_t *page)
{
    size_t room = page->room != 0 ? page->room * 2 : FIRST_ROOM;

    if (page->count < page->room) {
        return true;
    }
    cwist_jq__letter **letters = cwist_jq__realloc(page->letters, room * sizeof(*letters));
    if (letters == NULL) {
        return false;
    }
    page->letters = letters;
    page->room = room;
    return true;
}

int cwist_jq__page_add(cwist_job_dead_page_t *page, const cwist_jq__letter *letter)
{
    cwist_jq__letter *own = make_room(page) ? cwist_jq__alloc(block_size(letter)) : NULL;

    if (own == NULL) {
        return cwist_jq__no_memory();
    }
    copy(own, letter);
    page->letters[page->count++] = own;
    return CWIST_SUCCESS;
}

void cwist_jq__page_clear(cwist_job_dead_page_t *page)
{
    for (size_t i = 0; i < page->count; i++) {
        cwist_jq__free(page->letters[i]);
    }
    cwist_jq__free(page->letters);
    cwist_jq__free(page->mark);
    memset(page, 0, sizeof *page);
}

bool cwist_jq__letter_is_of(const cwist_jq__letter *letter, const char *type)
{
    const char *own = letter->told.type != NULL ? letter->told.type : "";

    return type == NULL || strcmp(own, type) == 0;
}

size_t cwist_job_dead_page_count(const cwist_job_dead_page_t *page)
{
    return page != NULL ? page->count : 0;
}

const cwist_job_dead_letter_t *cwist_job_dead_page_at(const cwist_job_dead_page_t *page,
                                                      size_t index)
{
    return page != NULL && index < page->count ? &page->letters[index]->told : NULL;
}

const char *cwist_job_dead_page_mark(const cwist_job_dead_page_t *page)
{
    return page != NULL ? page->mark : NULL;
}

void cwist_job_dead_page_free(cwist_job_dead_page_t *page)
{
    if (page != NULL) {
        cwist_jq__page_clear(page);
        cwist_jq__free(page);
    }
}
