/*
 * Moves that the server has no word for: a release writes a copy that carries the old count, a
 * death writes a dead letter; both then acknowledge the original. A cut in between leaves both, and
 * the next claim of either one mends it.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

#define ONCE "Nats-Expected-Last-Subject-Sequence"

static void add_number(cwist_jq__headers *headers, const char *name, uint64_t number)
{
    cwist_jq__headers_own(headers, name, cwist_jq__format("%llu", (unsigned long long)number));
}

/* The headers that a copy and a dead letter share. */
static void add_common(cwist_jq__headers *headers, const cwist_jq__job *job,
                       const cwist_jq__origin *origin, uint64_t attempts)
{
    cwist_jq__headers_add(headers, ONCE, "0");
    cwist_jq__headers_add(headers, "Cwist-Id", job->id);
    add_number(headers, "Cwist-First", origin->first);
    add_number(headers, "Cwist-Attempts", attempts);
}

static int lease_check(cwist_jq__queue *queue, cwist_jq__job *job, const cwist_jq__wait *wait)
{
    cwist_jq__lease_review(queue, job, wait);
    return cwist_jq__passed(atomic_load(&job->lease_ends))
               ? cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the lease of this delivery ran out")
               : CWIST_SUCCESS;
}

int cwist_jq__nats_release(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__origin origin;
    cwist_jq__headers headers;
    uint64_t sent_at = 0;
    int status = lease_check(queue, job, &wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    memset(&headers, 0, sizeof headers);
    cwist_jq__origin_read(&origin, job->body);
    add_common(&headers, job, &origin, job->attempts - 1);
    add_number(&headers, "Cwist-From", origin.ticket.sequence);
    cwist_jq__headers_keep(&headers, job->body, false);
    /* A subject of its own: a repeat is refused instead of doubling the job. */
    char *subject =
        cwist_jq__format("%s.copy.%s", cwist_jq__nats_queue_of(queue)->jobs, origin.sequence);
    if (subject == NULL || headers.failed) {
        status = cwist_jq__no_memory();
    } else {
        cwist_jq__request request = {subject, job->payload, job->payload_len, headers.list,
                                     headers.count};
        status = cwist_jq__publish_once(queue, &request, false, &job->lease_ends, &wait);
    }
    if (status == CWIST_SUCCESS) {
        /* The job is ready as the copy. Should this fail, the copy's claim deletes the original. */
        (void)cwist_jq__confirm(queue, job, "+ACK", true, true, &sent_at, &wait);
    }
    cwist_jq__free(subject);
    cwist_jq__headers_clear(&headers);
    return status;
}

/* Percent-encodes what a header line cannot carry; NULL: no memory. */
static char *encode(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = strlen(text);
    char *out = len < SIZE_MAX / 3 ? cwist_jq__alloc(len * 3 + 1) : NULL;
    size_t used = 0;

    for (size_t i = 0; out != NULL && i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool outer = i == 0 || i == len - 1;
        if (c > 0x7E || c < 0x20 || c == '%' || (c == ' ' && outer)) {
            out[used++] = '%';
            out[used++] = digits[c >> 4];
            out[used++] = digits[c & 15];
        } else {
            out[used++] = (char)c;
        }
    }
    if (out != NULL) {
        out[used] = '\0';
    }
    return out;
}

/*
 * All headers of the dead letter; without those of other publishers when there is no room, and none
 * at all when a publisher used the room that is to be kept free.
 */
static void add_dead_headers(cwist_jq__headers *headers, cwist_jq__queue *queue, cwist_jq__job *job,
                             const cwist_jq__origin *origin, cwist_jq__cause cause,
                             const char *text)
{
    int64_t most = atomic_load(&cwist_jq__nats_of(queue)->max_payload);

    add_common(headers, job, origin, job->attempts);
    cwist_jq__headers_add(headers, "Cwist-Cause", cwist_jq__cause_name(cause));
    if (text != NULL && *text != '\0') {
        cwist_jq__headers_own(headers, "Cwist-Reason", encode(text));
    }
    if (cause == CWIST_JQ_CAUSE_NACKED || cause == CWIST_JQ_CAUSE_REJECTED) {
        cwist_jq__headers_add(headers, "Cwist-Consumer", queue->consumer);
    }
    size_t ours = headers->count;
    size_t room = most > (int64_t)job->payload_len ? (size_t)most - job->payload_len : 0;
    cwist_jq__headers_keep(headers, job->body, cause == CWIST_JQ_CAUSE_MALFORMED);
    if (!headers->failed && cwist_jq__headers_size(headers) > room) {
        headers->count = ours;
        if (cause != CWIST_JQ_CAUSE_MALFORMED) {
            cwist_jq__headers_type(headers, job->type);
        }
    }
    if (!headers->failed && cwist_jq__headers_size(headers) > room) {
        cwist_jq__headers_clear(headers);
    }
}

/* For a dead letter without the header that refuses repeats: is it there already? */
static int is_buried(bool *there, cwist_jq__queue *queue, const char *subject,
                     const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    char *api =
        cwist_jq__format("$JS.API.STREAM.MSG.GET.%s_DEAD", cwist_jq__nats_queue_of(queue)->stream);
    char *body = cwist_jq__format("{\"last_by_subj\":\"%s\"}", subject);
    int status = CWIST_SUCCESS;

    memset(&answer, 0, sizeof answer);
    if (api != NULL && body != NULL) {
        status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), api, body, wait);
    } else {
        status = cwist_jq__no_memory();
    }
    *there = status == CWIST_SUCCESS && answer.error == 0;
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(api);
    cwist_jq__free(body);
    return status;
}

int cwist_jq__nats_bury(cwist_jq__queue *queue, cwist_jq__job *job, cwist_jq__cause cause,
                        const char *text, uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__origin origin;
    cwist_jq__headers headers;
    uint64_t sent_at = 0;
    bool there = false;
    int status = lease_check(queue, job, &wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    memset(&headers, 0, sizeof headers);
    cwist_jq__origin_read(&origin, job->body);
    add_dead_headers(&headers, queue, job, &origin, cause, text);
    char *subject = cwist_jq__format("%s.dead.%s-%llu", cwist_jq__nats_queue_of(queue)->stream,
                                     job->id, (unsigned long long)origin.first);
    if (subject == NULL || headers.failed) {
        status = cwist_jq__no_memory();
    } else if (headers.count == 0) {
        status = is_buried(&there, queue, subject, &wait);
    }
    if (status == CWIST_SUCCESS && !there) {
        cwist_jq__request request = {subject, job->payload, job->payload_len, headers.list,
                                     headers.count};
        status = cwist_jq__publish_once(queue, &request, true, &job->lease_ends, &wait);
    }
    if (status == CWIST_SUCCESS) {
        /* The job is dead now: the original must go, also when the lease has just run out. */
        status = cwist_jq__confirm(queue, job, "+ACK", false, true, &sent_at, &wait);
        if (status == CWIST_ERROR_LEASE_LOST) {
            status =
                CWIST_SUCCESS; /* the consumer is gone; a later delivery ends as 10071, acked */
        }
    }
    cwist_jq__free(subject);
    cwist_jq__headers_clear(&headers);
    return status;
}
