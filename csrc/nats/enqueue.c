/* Jobs on their way into the stream. */
#include <string.h>

#include "nats/jetstream.h"

/* Kept free in every message, so that each job can become a dead letter with all that it carries.
 */
#define RESERVE 16384

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

    if (item->len <= limit && extra <= limit - item->len) {
        return CWIST_SUCCESS;
    }
    return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                          "payload of %zu bytes and type take %zu bytes; the limit is %zu (the "
                          "server's max_payload less 16 KiB)",
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
    size_t bytes = items[0].len;
    size_t taken = 1;

    while (taken < most && bytes < CWIST_JQ_BURST_BYTES &&
           items[taken].len <= CWIST_JQ_BURST_BYTES - bytes) {
        bytes += items[taken++].len;
    }
    return taken;
}

static bool fill_post(cwist_jq__post *post, const cwist_jq__queue *queue,
                      const cwist_job_item_t *item, size_t place)
{
    cwist_jq__post_init(post, place);
    cwist_jq__headers_type(&post->headers, item->type);
    post->request.subject = cwist_jq__nats_queue_of(queue)->jobs;
    post->request.data = item->payload != NULL ? item->payload : "";
    post->request.len = item->len;
    post->request.headers = post->headers.list;
    post->request.header_count = post->headers.count;
    return !post->headers.failed;
}

/* Stores the items from `first` on that make one burst; returns how many these are. */
static size_t store_piece(cwist_jq__queue *queue, cwist_jq__post *posts,
                          const cwist_job_item_t *items, size_t first, size_t count,
                          const cwist_jq__wait *wait, cwist_job_stored_t *stored,
                          cwist_jq__failure *failure)
{
    size_t taken = piece_of(items + first, count - first);
    bool ready = true;

    for (size_t i = 0; i < taken; i++) {
        ready = fill_post(&posts[i], queue, &items[first + i], first + i) && ready;
    }
    if (ready) {
        cwist_jq__store(queue, posts, taken, CWIST_JQ_FOR_JOB, wait, failure);
    } else {
        cwist_jq__failure_note(failure, first, cwist_jq__no_memory());
    }
    for (size_t i = 0; i < taken; i++) {
        stored[first + i].code = ready    ? posts[i].code
                                 : i == 0 ? CWIST_ERROR_NOMEM
                                          : CWIST_ERROR_NOT_SENT;
        if (posts[i].code == CWIST_SUCCESS) {
            (void)cwist_jq__put_number(stored[first + i].id, posts[i].sequence);
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
