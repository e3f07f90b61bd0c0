/*
 * All dead letters, or those of a type: requeued or deleted, oldest first, a piece at a time. Only
 * those that were there when the call began: as many as there were then, from the oldest on, and
 * none that died later than the newest of them. So it ends, also when jobs that are requeued die
 * again meanwhile.
 */
#include <string.h>

#include "core/api.h"
#include "core/letters.h"
#include "core/queue.h"

typedef int (*mover)(cwist_jq__queue *queue, const cwist_jq__letter *const *letters, size_t count,
                     uint64_t deadline, int *codes);

/* A walk over the dead letters. */
typedef struct walk {
    cwist_jq__queue *queue;
    const char *type;    /* NULL: all */
    uint64_t died_until; /* later letters are not touched */
    uint64_t left;       /* letters to look at */
    bool by_age;         /* letters whose time of death is not known stay */
    mover move;
    char *after; /* the mark of the last letter that was left where it is; NULL: none */
    uint64_t *done;
    bool over;
} walk;

/* The end of the walk: how many letters there are, and when the newest of them died. */
static int look_ahead(walk *all)
{
    cwist_jq__queue *queue = all->queue;
    const cwist_jq__ops *ops = queue->conn->ops;
    cwist_job_dead_page_t page = {0};
    uint64_t deadline = cwist_jq__operation_deadline(queue);
    bool more = false;

    int status = ops->dead_count(queue, deadline, &all->left);
    if (status == CWIST_SUCCESS && all->left != 0) {
        status = ops->dead_list(queue, NULL, 1, false, deadline, &page, &more);
    }
    if (status == CWIST_SUCCESS && page.count != 0) {
        uint64_t newest = page.letters[0]->told.died_ms;
        if (newest != 0 && newest < all->died_until) {
            all->died_until = newest;
        }
    }
    all->over = page.count == 0;
    cwist_jq__page_clear(&page);
    return status;
}

static bool is_due(const walk *all, const cwist_jq__letter *letter)
{
    uint64_t died_ms = letter->told.died_ms;

    return died_ms <= all->died_until && (died_ms != 0 || !all->by_age);
}

/*
 * Chooses the letters of a piece that are to go, and marks the last that stays. Behind a piece of
 * letters that are all too young there is none that is old.
 */
static int choose(walk *all, const cwist_job_dead_page_t *piece, const cwist_jq__letter **chosen,
                  size_t *count)
{
    const cwist_jq__letter *stays = NULL;
    bool young = true;

    *count = 0;
    for (size_t i = 0; i < piece->count; i++) {
        const cwist_jq__letter *letter = piece->letters[i];
        bool due = is_due(all, letter);
        young = young && letter->told.died_ms > all->died_until;
        if (due && cwist_jq__letter_is_of(letter, all->type)) {
            chosen[(*count)++] = letter;
        } else {
            stays = letter;
        }
    }
    all->over = all->over || young;
    if (stays != NULL) {
        cwist_jq__free(all->after);
        all->after = cwist_jq__strdup(stays->mark);
        return all->after != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
    }
    return CWIST_SUCCESS;
}

/* Moves the chosen. One that another operator moved first is no failure. */
static int move_chosen(walk *all, const cwist_jq__letter *const *chosen, size_t count,
                       uint64_t deadline)
{
    int codes[CWIST_JQ_PIECE];
    int failed = CWIST_SUCCESS;

    int status = all->move(all->queue, chosen, count, deadline, codes);
    for (size_t i = 0; i < count; i++) {
        *all->done += codes[i] == CWIST_SUCCESS ? 1 : 0;
        if (failed == CWIST_SUCCESS && codes[i] != CWIST_ERROR_NOT_FOUND) {
            failed = codes[i];
        }
    }
    if (status == CWIST_ERROR_NOT_FOUND && failed != CWIST_SUCCESS) {
        return cwist_jq__fail(failed, "a dead letter could not be moved");
    }
    return status == CWIST_ERROR_NOT_FOUND ? CWIST_SUCCESS : status;
}

static int step(walk *all)
{
    cwist_job_dead_page_t piece = {0};
    const cwist_jq__letter *chosen[CWIST_JQ_PIECE];
    uint64_t deadline = cwist_jq__operation_deadline(all->queue);
    size_t most = all->left < CWIST_JQ_PIECE ? (size_t)all->left : CWIST_JQ_PIECE;
    size_t count = 0;
    bool more = false;

    int status = all->queue->conn->ops->dead_list(all->queue, all->after, most, true, deadline,
                                                  &piece, &more);
    if (status == CWIST_SUCCESS) {
        all->left -= piece.count < all->left ? piece.count : all->left;
        status = choose(all, &piece, chosen, &count);
        all->over = all->over || !more || piece.count == 0 || all->left == 0;
    }
    if (status == CWIST_SUCCESS && count != 0) {
        status = move_chosen(all, chosen, count, deadline);
    }
    cwist_jq__page_clear(&piece);
    return status;
}

static int run(walk *all)
{
    int status =
        all->type != NULL ? cwist_jq__check_type(all->type, strlen(all->type)) : CWIST_SUCCESS;

    if (status == CWIST_SUCCESS) {
        status = look_ahead(all);
    }
    while (status == CWIST_SUCCESS && !all->over) {
        status = step(all);
    }
    cwist_jq__free(all->after);
    return status;
}

cwist_error_t cwist_job_dead_requeue_all(cwist_job_queue_t *handle, const char *type,
                                         uint64_t *count)
{
    cwist_jq__queue *queue = NULL;
    uint64_t done = 0;
    int status = cwist_jq__begin(&queue, handle, "dead_requeue_all");

    if (status == CWIST_SUCCESS) {
        walk all = {.queue = queue,
                    .type = type,
                    .died_until = UINT64_MAX,
                    .move = queue->conn->ops->dead_requeue,
                    .done = &done};
        status = run(&all);
    }
    if (count != NULL) {
        *count = done;
    }
    return cwist_jq__end(queue, "dead_requeue_all", status);
}

/* The moment by the server's clock that was so long ago; 0: none. */
static int time_ago(cwist_jq__queue *queue, uint64_t ago_ms, uint64_t *moment_ms)
{
    uint64_t now_ms = 0;
    int status = CWIST_SUCCESS;

    *moment_ms = UINT64_MAX;
    if (ago_ms != 0) {
        status = queue->conn->ops->server_time(queue, cwist_jq__operation_deadline(queue), &now_ms);
        *moment_ms = now_ms > ago_ms ? now_ms - ago_ms : 0;
    }
    return status;
}

cwist_error_t cwist_job_dead_purge_all(cwist_job_queue_t *handle, const char *type,
                                       uint64_t older_than_ms, uint64_t *count)
{
    cwist_jq__queue *queue = NULL;
    uint64_t done = 0;
    walk all = {.type = type, .done = &done};
    int status = cwist_jq__begin(&queue, handle, "dead_purge_all");

    if (status == CWIST_SUCCESS) {
        all.queue = queue;
        all.move = queue->conn->ops->dead_remove;
        all.by_age = older_than_ms != 0;
        status = time_ago(queue, older_than_ms, &all.died_until);
    }
    if (status == CWIST_SUCCESS) {
        status = run(&all);
    }
    if (count != NULL) {
        *count = done;
    }
    return cwist_jq__end(queue, "dead_purge_all", status);
}
