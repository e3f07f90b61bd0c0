/* Jobs on their way into the stream. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

/* Kept free in every message, so that each job can become a dead letter with all that it carries.
 */
#define RESERVE 16384
/* The servers take so many bytes of headers, whatever max_payload is. */
#define HEADERS_MOST (65535 - RESERVE)

static size_t size_of_type(const char *type)
{
    cwist_jq__headers headers;

    memset(&headers, 0, sizeof headers);
    cwist_jq__headers_type(&headers, type);
    size_t size = cwist_jq__headers_size(&headers);
    cwist_jq__headers_clear(&headers);
    return size;
}

int cwist_jq__nats_check_size(cwist_jq__queue *queue, const cwist_job_item_t *item)
{
    int64_t most = atomic_load(&cwist_jq__nats_of(queue)->max_payload) - RESERVE;
    size_t limit = most > 0 ? (size_t)most : 0;
    size_t extra = item->type != NULL ? size_of_type(item->type) : 0;

    extra += item->header_count != 0 ? cwist_jq__item_size(item) - item->len : 0;
    if (extra > HEADERS_MOST) {
        return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                              "type and headers take %zu bytes; the limit is %d (the 64 KiB of the "
                              "server less 16 KiB)",
                              extra, HEADERS_MOST);
    }
    if (item->len <= limit && extra <= limit - item->len) {
        return CWIST_SUCCESS;
    }
    return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                          "payload of %zu bytes, type and headers take %zu bytes; the limit is %zu "
                          "(the server's max_payload less 16 KiB)",
                          item->len, item->len + extra, limit);
}

/*
 * The stream is looked at before the first job of a handle: another's stream under this name would
 * take the jobs and lose them. A producer without the right to look publishes all the same.
 */
static int check_stream_once(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);

    if (atomic_load(&own->stream_known)) {
        return CWIST_SUCCESS;
    }
    int status = cwist_jq__ensure_jobs(queue, wait);
    if (status == CWIST_ERROR_DENIED) {
        atomic_store(&own->stream_known, true);
        status = CWIST_SUCCESS;
    }
    return status;
}

/* How many of the items go into one burst. */
static size_t piece_of(const cwist_job_item_t *items, size_t count)
{
    size_t most = count < CWIST_JQ_BURST_MAX ? count : CWIST_JQ_BURST_MAX;
    size_t bytes = cwist_jq__item_size(&items[0]);
    size_t taken = 1;

    while (taken < most && bytes < CWIST_JQ_BURST_BYTES) {
        size_t size = cwist_jq__item_size(&items[taken]);
        if (size > CWIST_JQ_BURST_BYTES - bytes) {
            break;
        }
        bytes += size;
        taken++;
    }
    return taken;
}

/* ---- jobs whose key another job holds ---- */

static bool is_any_taken(const cwist_jq__post *posts, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        any = any || posts[i].code == CWIST_JQ_TAKEN;
    }
    return any;
}

/* Asks who holds the keys of the posts that were refused. */
static int ask_holders(cwist_jq__queue *queue, cwist_jq__ask *asks, const cwist_jq__post *posts,
                       size_t count, const cwist_jq__wait *wait)
{
    char get[CWIST_JQ_SUBJECT_SIZE];
    int status = CWIST_SUCCESS;

    (void)snprintf(get, sizeof get, "$JS.API.STREAM.MSG.GET.%s",
                   cwist_jq__nats_queue_of(queue)->stream);
    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        asks[i].done = posts[i].code != CWIST_JQ_TAKEN;
        if (!asks[i].done) {
            status = cwist_jq__holder_ask(&asks[i], get, posts[i].subject);
        }
    }
    if (status != CWIST_SUCCESS) {
        return status;
    }
    return count == 1
               ? cwist_jq__api(&asks[0].answer, cwist_jq__nats_of(queue), get, asks[0].body, wait)
               : cwist_jq__ask_all(cwist_jq__nats_of(queue), asks, count, wait);
}

/*
 * Tells whose duplicates the refused items are. One whose holder is gone meanwhile is to be sent
 * again.
 */
static void find_holders(cwist_jq__queue *queue, cwist_jq__post *posts, size_t count,
                         const cwist_jq__wait *wait, cwist_job_stored_t *stored,
                         cwist_jq__failure *failure)
{
    cwist_jq__ask *asks = cwist_jq__calloc(count, sizeof *asks);
    int status =
        asks != NULL ? ask_holders(queue, asks, posts, count, wait) : cwist_jq__no_memory();

    for (size_t i = 0; i < count; i++) {
        if (posts[i].code != CWIST_JQ_TAKEN) {
            continue;
        }
        if (asks == NULL || asks[i].answer.message == NULL) {
            posts[i].code = status;
            cwist_jq__failure_note(failure, posts[i].item, status);
        } else if (cwist_jq__holder_read(stored[i].id, &asks[i])) {
            stored[i].duplicate = true;
            posts[i].code = CWIST_SUCCESS;
        } else if (cwist_jq__answer_is_gone(&asks[i].answer)) {
            posts[i].code = CWIST_JQ_PENDING;
        } else {
            posts[i].code = cwist_jq__answer_fail(&asks[i].answer, "who holds the dedupe key");
            cwist_jq__failure_note(failure, posts[i].item, posts[i].code);
        }
    }
    if (asks != NULL) {
        cwist_jq__ask_clear(asks, count);
    }
    cwist_jq__free(asks);
}

/* ---- a piece of a batch ---- */

static int prepare(cwist_jq__post *post, const cwist_jq__queue *queue, const cwist_job_item_t *item,
                   size_t place, int can_delay)
{
    cwist_jq__post_init(post, place);
    if (item->delay_ms != 0 && can_delay != CWIST_SUCCESS) {
        return can_delay;
    }
    return cwist_jq__item_fill(post, queue, item);
}

static bool is_any_delayed(const cwist_job_item_t *items, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        any = any || items[i].delay_ms != 0;
    }
    return any;
}

/* Makes the posts of a piece. Those behind one that cannot be made are not sent. */
static void fill_posts(cwist_jq__queue *queue, cwist_jq__post *posts, const cwist_job_item_t *items,
                       size_t count, size_t first, const cwist_jq__wait *wait,
                       cwist_jq__failure *failure)
{
    int can_delay =
        is_any_delayed(items, count) ? cwist_jq__ensure_schedules(queue, wait) : CWIST_SUCCESS;
    int status = CWIST_SUCCESS;

    for (size_t i = 0; i < count; i++) {
        int code = prepare(&posts[i], queue, &items[i], first + i, can_delay);
        if (code != CWIST_SUCCESS) {
            posts[i].code = code;
            cwist_jq__failure_note(failure, first + i, code);
        } else if (status != CWIST_SUCCESS) {
            posts[i].code = CWIST_ERROR_NOT_SENT;
        }
        status = status == CWIST_SUCCESS ? code : status;
    }
}

/* Stores the items from `first` on that make one burst; returns how many these are. */
static size_t store_piece(cwist_jq__queue *queue, cwist_jq__post *posts,
                          const cwist_job_item_t *items, size_t first, size_t count,
                          const cwist_jq__wait *wait, cwist_job_stored_t *stored,
                          cwist_jq__failure *failure)
{
    size_t taken = piece_of(items + first, count - first);
    bool again = false;

    for (size_t i = 0; i < taken; i++) {
        stored[first + i].duplicate = false;
    }
    fill_posts(queue, posts, items + first, taken, first, wait, failure);
    do {
        cwist_jq__store(queue, posts, taken, CWIST_JQ_FOR_JOB, wait, failure);
        again = is_any_taken(posts, taken);
        if (again) {
            find_holders(queue, posts, taken, wait, stored + first, failure);
        }
    } while (again);
    for (size_t i = 0; i < taken; i++) {
        cwist_job_stored_t *out = &stored[first + i];
        out->code = posts[i].code;
        if (out->code == CWIST_SUCCESS && posts[i].id != NULL && !out->duplicate) {
            memcpy(out->id, posts[i].id, strlen(posts[i].id) + 1);
        } else if (out->code == CWIST_SUCCESS && !out->duplicate) {
            (void)cwist_jq__put_number(out->id, posts[i].sequence);
        }
        cwist_jq__post_clear(&posts[i]);
    }
    return taken;
}

int cwist_jq__nats_enqueue(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                           bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__failure failure;
    cwist_jq__post single;
    cwist_jq__post *posts = &single;
    int status = check_stream_once(queue, &wait);

    if (status == CWIST_SUCCESS) {
        status = cwist_jq__ensure_limit(queue, &wait);
    }
    if (status != CWIST_SUCCESS) {
        stored[0].code = status;
        return status;
    }
    if (all_or_none && count > 1) {
        return cwist_jq__nats_enqueue_all(queue, items, count, &wait, stored);
    }
    if (count > 1) {
        size_t room = count < CWIST_JQ_BURST_MAX ? count : CWIST_JQ_BURST_MAX;
        posts = cwist_jq__alloc(room * sizeof *posts);
        if (posts == NULL) {
            return cwist_jq__no_memory();
        }
    }
    failure.code = CWIST_SUCCESS;
    for (size_t done = 0; done < count && failure.code == CWIST_SUCCESS;) {
        done += store_piece(queue, posts, items, done, count, &wait, stored, &failure);
    }
    if (posts != &single) {
        cwist_jq__free(posts);
    }
    return cwist_jq__failure_tell(&failure);
}
