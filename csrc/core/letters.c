/* Dead letters, one or a page of them: list, read, requeue, purge. */
#include "core/letters.h"

#include <string.h>

#include "core/api.h"
#include "core/queue.h"

#define USUAL_PAGE 100

/* ---- list ---- */

/* A listing under way. */
typedef struct listing {
    cwist_jq__queue *queue;
    const cwist_job_dead_query_t *query;
    size_t most;
    cwist_job_dead_page_t *page; /* what is found */
    bool more;                   /* letters follow behind page->mark */
} listing;

/* The list goes on behind that letter. */
static int set_mark(listing *list, const cwist_jq__letter *last)
{
    cwist_jq__free(list->page->mark);
    list->page->mark = cwist_jq__strdup(last->mark);
    return list->page->mark != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
}

/* Moves the letters of the type from a piece to the page until that is full. */
static int choose(listing *list, cwist_job_dead_page_t *piece)
{
    const cwist_jq__letter *last = NULL;
    int status = CWIST_SUCCESS;
    size_t at = 0;

    while (at < piece->count && list->page->count < list->most && status == CWIST_SUCCESS) {
        last = piece->letters[at++];
        if (cwist_jq__letter_is_of(last, list->query->type)) {
            status = cwist_jq__page_add(list->page, last);
        }
    }
    list->more = list->more || at < piece->count;
    return status == CWIST_SUCCESS && last != NULL ? set_mark(list, last) : status;
}

static int list_piece(listing *list, size_t most, uint64_t deadline)
{
    cwist_job_dead_page_t piece = {0};
    const char *after = list->page->mark != NULL ? list->page->mark : list->query->after;

    list->more = false;
    int status = list->queue->conn->ops->dead_list(
        list->queue, after, most, list->query->oldest_first, deadline, &piece, &list->more);
    if (status == CWIST_SUCCESS) {
        status = choose(list, &piece);
    }
    cwist_jq__page_clear(&piece);
    return status;
}

/*
 * Lists until the page is full. Letters of a type may be far apart: after half of the time the page
 * ends as it is, with a mark from which the search goes on.
 */
static int list_all(listing *list)
{
    uint64_t deadline = cwist_jq__operation_deadline(list->queue);
    uint64_t enough = cwist_jq__share_of_time(deadline, 2);
    int status = CWIST_SUCCESS;

    do {
        size_t left = list->most - list->page->count;
        status = list_piece(list, list->query->type == NULL ? left : CWIST_JQ_PIECE, deadline);
    } while (status == CWIST_SUCCESS && list->more && list->page->count < list->most &&
             !cwist_jq__passed(enough));
    if (!list->more) {
        cwist_jq__free(list->page->mark);
        list->page->mark = NULL;
    }
    return status;
}

static int check_query(const cwist_job_dead_query_t *query)
{
    if (query->most > CWIST_JOB_BATCH_MAX) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "most is %zu; allowed: 1 to %d, 0 for the default of %d", query->most,
                              CWIST_JOB_BATCH_MAX, USUAL_PAGE);
    }
    if (query->after != NULL && query->after[0] == '\0') {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "after is empty; allowed: the mark of a page, NULL for the first");
    }
    return query->type != NULL ? cwist_jq__check_type(query->type, strlen(query->type))
                               : CWIST_SUCCESS;
}

/* Makes an empty page for the caller. */
static int new_page(cwist_job_dead_page_t **page)
{
    if (page == NULL) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "page is NULL");
    }
    *page = cwist_jq__calloc(1, sizeof **page);
    return *page != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
}

/* The page is the caller's only on success. */
static void drop_failed(cwist_job_dead_page_t **page, int status)
{
    if (status != CWIST_SUCCESS && page != NULL) {
        cwist_job_dead_page_free(*page);
        *page = NULL;
    }
}

cwist_error_t cwist_job_dead_list(cwist_job_queue_t *handle, const cwist_job_dead_query_t *query,
                                  cwist_job_dead_page_t **page)
{
    static const cwist_job_dead_query_t all;
    cwist_jq__queue *queue = NULL;

    query = query != NULL ? query : &all;
    if (page != NULL) {
        *page = NULL;
    }
    int status = cwist_jq__begin(&queue, handle, "dead_list");
    if (status == CWIST_SUCCESS) {
        status = check_query(query);
    }
    if (status == CWIST_SUCCESS) {
        status = new_page(page);
    }
    if (status == CWIST_SUCCESS) {
        listing list = {.queue = queue,
                        .query = query,
                        .most = query->most != 0 ? query->most : USUAL_PAGE,
                        .page = *page};
        status = list_all(&list);
    }
    drop_failed(page, status);
    return cwist_jq__end(queue, "dead_list", status);
}

/* ---- one letter ---- */

static int find(cwist_jq__queue *queue, const char *id, bool payload, uint64_t deadline,
                cwist_job_dead_page_t *page)
{
    if (id == NULL || *id == '\0' || strlen(id) >= CWIST_JOB_ID_SIZE) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "id is %s; allowed: that of a job",
                              id == NULL    ? "NULL"
                              : *id == '\0' ? "empty"
                                            : "too long");
    }
    return queue->conn->ops->dead_find(queue, id, payload, deadline, page);
}

cwist_error_t cwist_job_dead_read(cwist_job_queue_t *handle, const char *id,
                                  cwist_job_dead_page_t **page)
{
    cwist_jq__queue *queue = NULL;

    if (page != NULL) {
        *page = NULL;
    }
    int status = cwist_jq__begin(&queue, handle, "dead_read");
    if (status == CWIST_SUCCESS) {
        status = new_page(page);
    }
    if (status == CWIST_SUCCESS) {
        status = find(queue, id, true, cwist_jq__operation_deadline(queue), *page);
    }
    drop_failed(page, status);
    return cwist_jq__end(queue, "dead_read", status);
}

typedef int (*mover)(cwist_jq__queue *queue, const cwist_jq__letter *const *letters, size_t count,
                     uint64_t deadline, int *codes);

static int move_one(cwist_jq__queue *queue, const char *id, mover move)
{
    cwist_job_dead_page_t page = {0};
    uint64_t deadline = cwist_jq__operation_deadline(queue);
    int status = find(queue, id, false, deadline, &page);

    if (status == CWIST_SUCCESS) {
        const cwist_jq__letter *letter = page.letters[0];
        int code = CWIST_SUCCESS;
        status = move(queue, &letter, 1, deadline, &code);
    }
    cwist_jq__page_clear(&page);
    return status;
}

cwist_error_t cwist_job_dead_requeue(cwist_job_queue_t *handle, const char *id)
{
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__begin(&queue, handle, "dead_requeue");

    if (status == CWIST_SUCCESS) {
        status = move_one(queue, id, queue->conn->ops->dead_requeue);
    }
    return cwist_jq__end(queue, "dead_requeue", status);
}

cwist_error_t cwist_job_dead_purge(cwist_job_queue_t *handle, const char *id)
{
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__begin(&queue, handle, "dead_purge");

    if (status == CWIST_SUCCESS) {
        status = move_one(queue, id, queue->conn->ops->dead_remove);
    }
    return cwist_jq__end(queue, "dead_purge", status);
}
