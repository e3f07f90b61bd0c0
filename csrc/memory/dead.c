/* Dead letters: read, moved back, deleted. A letter's number is its place and the list's mark. */
#include <stdio.h>
#include <string.h>

#include "memory/memory.h"
#include "platform/clock.h"

int cwist_jq__memory_dead_count(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count)
{
    (void)deadline;
    *count = cwist_jq__memory_enter(queue)->dead.count;
    cwist_jq__memory_leave(queue);
    return CWIST_SUCCESS;
}

/* Adds a letter to a page. */
static int tell(const cwist_jq__memory_letter *letter, bool payload, cwist_job_dead_page_t *page)
{
    const cwist_jq__memory_job *job = letter->job;
    const cwist_jq__memory_body *body = job->body;
    cwist_job_header_t headers[CWIST_JOB_HEADERS_MAX];
    char number[24];
    char id[24];

    int len = snprintf(number, sizeof number, "%llu", (unsigned long long)letter->number);
    (void)snprintf(id, sizeof id, "%llu", (unsigned long long)job->by_id.hash);
    for (size_t i = 0; i < body->header_count; i++) {
        headers[i] = (cwist_job_header_t){body->headers[i].name, body->headers[i].value};
    }
    cwist_jq__letter told = {
        .told = {.id = id,
                 .type = body->type_len != 0 ? body->type : NULL,
                 .cause = cwist_jq__cause_name(letter->cause),
                 .reason = letter->reason,
                 .consumer = letter->consumer->name,
                 .attempts = job->attempts,
                 .first_ms = job->first_ms,
                 .died_ms = letter->died_ms,
                 .len = body->payload_len,
                 .payload = payload ? body->payload : NULL,
                 .headers = headers,
                 .header_count = body->header_count},
        .place = number,
        .place_len = (size_t)len,
        .mark = number,
    };
    return cwist_jq__page_add(page, &told);
}

static const cwist_jq__memory_letter *next_letter(const cwist_jq__memory_letters *letters,
                                                  uint64_t number, bool oldest_first)
{
    return oldest_first ? cwist_jq__memory_letters_after(letters, number)
                        : cwist_jq__memory_letters_before(letters, number);
}

int cwist_jq__memory_dead_list(cwist_jq__queue *queue, const char *after, size_t most,
                               bool oldest_first, uint64_t deadline, cwist_job_dead_page_t *page,
                               bool *more)
{
    const cwist_jq__memory_letters *letters = &cwist_jq__memory_enter(queue)->dead;
    uint64_t number = oldest_first ? 0 : UINT64_MAX;
    int status = CWIST_SUCCESS;

    (void)deadline;
    *more = false;
    if (after != NULL && (!cwist_jq__memory_number(after, strlen(after), &number) ||
                          number > letters->last_number)) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "after is no mark of this queue");
    }
    for (size_t i = 0; i <= most && status == CWIST_SUCCESS; i++) {
        const cwist_jq__memory_letter *letter = next_letter(letters, number, oldest_first);
        *more = letter != NULL;
        if (letter == NULL || i == most) {
            break;
        }
        number = letter->number;
        status = tell(letter, false, page);
    }
    cwist_jq__memory_leave(queue);
    return status;
}

int cwist_jq__memory_dead_find(cwist_jq__queue *queue, const char *id, bool payload,
                               uint64_t deadline, cwist_job_dead_page_t *page)
{
    const cwist_jq__memory_queue *own = cwist_jq__memory_enter(queue);
    const cwist_jq__memory_job *job = NULL;
    uint64_t number = 0;

    (void)deadline;
    if (cwist_jq__memory_number(id, strlen(id), &number)) {
        job = cwist_jq__memory_find(own, number);
    }
    int status = job != NULL && job->state == CWIST_JQ_MEMORY_DEAD
                     ? tell(cwist_jq__memory_letters_find(&own->dead, job->place), payload, page)
                     : cwist_jq__fail(CWIST_ERROR_NOT_FOUND, "there is no dead letter %s", id);
    cwist_jq__memory_leave(queue);
    return status;
}

/* ---- moving and deleting ---- */

static int requeue(const cwist_jq__queue *queue, cwist_jq__memory_job *job)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_of(queue)->queue;

    if (queue->max_length != 0 && cwist_jq__memory_live(own) >= queue->max_length) {
        return cwist_jq__fail(CWIST_ERROR_FULL, "the queue holds %llu jobs; allowed: %llu",
                              (unsigned long long)cwist_jq__memory_live(own),
                              (unsigned long long)queue->max_length);
    }
    cwist_jq__memory_take_out(own, job);
    cwist_jq__memory_worker_unref(own, job->lapsed_by);
    job->lapsed_by = NULL;
    job->attempts = 0;
    cwist_jq__memory_to_ready(own, job, cwist_jq__now());
    return CWIST_SUCCESS;
}

static int delete_job(const cwist_jq__queue *queue, cwist_jq__memory_job *job)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_of(queue)->queue;

    cwist_jq__memory_take_out(own, job);
    cwist_jq__memory_forget(own, job);
    return CWIST_SUCCESS;
}

static int for_each(cwist_jq__queue *queue, const cwist_jq__letter *const *letters, size_t count,
                    int *codes,
                    int (*change)(const cwist_jq__queue *queue, cwist_jq__memory_job *job))
{
    cwist_jq__memory_queue *own = cwist_jq__memory_enter(queue);
    cwist_jq__failure failure;

    failure.code = CWIST_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        const cwist_jq__memory_letter *letter = NULL;
        uint64_t number = 0;
        if (cwist_jq__memory_number(letters[i]->place, letters[i]->place_len, &number)) {
            letter = cwist_jq__memory_letters_find(&own->dead, number);
        }
        codes[i] = letter != NULL ? change(queue, letter->job)
                                  : cwist_jq__fail(CWIST_ERROR_NOT_FOUND,
                                                   "the dead letter %s is not there any more",
                                                   letters[i]->told.id);
        if (codes[i] != CWIST_SUCCESS) {
            cwist_jq__failure_note(&failure, i, codes[i]);
        }
    }
    cwist_jq__memory_leave(queue);
    return cwist_jq__failure_tell(&failure);
}

int cwist_jq__memory_dead_requeue(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                  size_t count, uint64_t deadline, int *codes)
{
    (void)deadline;
    return for_each(queue, letters, count, codes, requeue);
}

int cwist_jq__memory_dead_remove(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                 size_t count, uint64_t deadline, int *codes)
{
    (void)deadline;
    return for_each(queue, letters, count, codes, delete_job);
}
