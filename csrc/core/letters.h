/* Pages of dead letters, as the core works with them. */
#ifndef CWIST_JQ_LETTERS_H
#define CWIST_JQ_LETTERS_H

#include "core/backend.h"

/* Letters in the order in which they were added. Start with a zeroed struct. */
struct cwist_job_dead_page {
    cwist_jq__letter **letters;
    size_t count;
    size_t room;
    char *mark; /* NULL: nothing follows */
};

/* Frees what the page holds, and leaves it empty. */
void cwist_jq__page_clear(cwist_job_dead_page_t *page);

/* Whether the letter is of that type; NULL is any, "" is none. */
bool cwist_jq__letter_is_of(const cwist_jq__letter *letter, const char *type);

#endif
