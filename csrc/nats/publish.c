/* Storing messages: each is confirmed by the stream before the call returns. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

/* Kept free in every message, so that each job can become a dead letter with all that it carries.
 */
#define RESERVE 16384

/*
 * One try at publishing, if it can be sent before `wait` ends; the reply may come until `deadline`.
 * SUCCESS with an answer, or a reason as of cwist_jq__request_send().
 */
static int publish_try(cwist_jq__answer *answer, cwist_jq__nats *nats,
                       const cwist_jq__request *request, const cwist_jq__wait *wait,
                       uint64_t deadline)
{
    cwist_jq__link *link = NULL;
    natsMsg *reply = NULL;
    cwist_jq__wait answering = {deadline, wait->claim};
    int status = cwist_jq__link_get(&link, nats, wait);

    if (status == CWIST_SUCCESS && cwist_jq__passed(wait->deadline)) {
        status = CWIST_JQ_PENDING;
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__request_send(&reply, link, request, &answering);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__answer_read(answer, reply);
    }
    cwist_jq__link_unref(link);
    return status;
}

/* What is published: a copy makes no stream, because with the stream its original is gone too. */
typedef enum purpose { FOR_JOB, FOR_COPY, FOR_DEAD } purpose;

/*
 * What comes after a try that stored nothing: makes a missing stream, or waits a little. SUCCESS:
 * try again.
 */
static int prepare_again(cwist_jq__queue *queue, int last, purpose goal, cwist_jq__backoff *backoff,
                         const cwist_jq__wait *wait)
{
    unsigned before = backoff->tries;
    int status = CWIST_SUCCESS;

    if (last == CWIST_JQ_NO_RESPONDERS) {
        status = goal == FOR_DEAD   ? cwist_jq__ensure_dead(queue, wait)
                 : goal == FOR_COPY ? cwist_jq__find_jobs(queue, wait)
                                    : cwist_jq__ensure_jobs(queue, wait);
    }
    if (status == CWIST_SUCCESS && (last != CWIST_JQ_NO_RESPONDERS || before > 0)) {
        status = cwist_jq__wait_backoff(wait, backoff);
    }
    backoff->tries += backoff->tries == 0 ? 1 : 0;
    return status;
}

/* The wait ended and nothing was stored: says what the last try met. */
static int not_stored(int last, const cwist_jq__answer *answer)
{
    switch (last) {
    case CWIST_JQ_PENDING: /* the text of link_get stands */
        return CWIST_ERROR_IO;
    case CWIST_SUCCESS:
        return cwist_jq__answer_fail(answer, "not stored");
    case CWIST_JQ_NO_RESPONDERS:
        return cwist_jq__fail(CWIST_ERROR_IO, "not stored: the stream has no leader");
    default:
        return cwist_jq__fail(CWIST_ERROR_IO, "not stored: the connection broke");
    }
}

/* Publishes until it is stored or refused. LOST: sent, and no reply came. */
static int publish(cwist_jq__answer *answer, cwist_jq__queue *queue,
                   const cwist_jq__request *request, const cwist_jq__wait *wait)
{
    cwist_jq__backoff backoff = {0};

    memset(answer, 0, sizeof *answer);
    for (;;) {
        cwist_jq__answer_clear(answer);
        int last = publish_try(answer, cwist_jq__nats_of(queue), request, wait, wait->deadline);
        bool again = last == CWIST_JQ_NO_RESPONDERS || last == CWIST_JQ_UNSENT ||
                     (last == CWIST_SUCCESS && cwist_jq__answer_is_temporary(answer));
        if (!again && last != CWIST_JQ_PENDING) {
            return last;
        }
        int status =
            last == CWIST_JQ_PENDING ? last : prepare_again(queue, last, FOR_JOB, &backoff, wait);
        if (status != CWIST_SUCCESS) {
            return status == CWIST_JQ_PENDING ? not_stored(last, answer) : status;
        }
    }
}

static int check_size(cwist_jq__queue *queue, size_t len, const cwist_jq__headers *headers)
{
    int64_t most = atomic_load(&cwist_jq__nats_of(queue)->max_payload) - RESERVE;
    size_t limit = most > 0 ? (size_t)most : 0;
    size_t extra = cwist_jq__headers_size(headers);

    if (len <= limit && extra <= limit - len) {
        return CWIST_SUCCESS;
    }
    return cwist_jq__fail(CWIST_ERROR_TOO_LARGE,
                          "payload of %zu bytes and type take %zu bytes; the limit is %zu (the "
                          "server's max_payload less 16 KiB)",
                          len, len + extra, limit);
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

/* Takes the id out of the stream's confirmation. */
static int read_id(const cwist_jq__answer *answer, cwist_jq__queue *queue, char *id)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__json stream = cwist_jq__json_member(answer->json, "stream");
    int64_t sequence = cwist_jq__json_int(cwist_jq__json_member(answer->json, "seq"), 0);

    if (answer->error != 0) {
        return cwist_jq__answer_fail(answer, "not stored");
    }
    if (!cwist_jq__json_is(stream, own->stream)) {
        char other[128];
        cwist_jq__json_copy(stream, other, sizeof other);
        return cwist_jq__fail(CWIST_ERROR_CONFLICT,
                              "subject %s belongs to stream %s; this queue needs stream %s",
                              own->jobs, other, own->stream);
    }
    if (sequence <= 0) {
        return cwist_jq__fail(CWIST_ERROR_PROTOCOL, "the server confirmed without a sequence");
    }
    (void)snprintf(id, CWIST_JOB_ID_SIZE, "%lld", (long long)sequence);
    return CWIST_SUCCESS;
}

int cwist_jq__nats_enqueue(cwist_jq__queue *queue, const void *payload, size_t len,
                           const char *type, uint64_t deadline, char *id)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__headers headers;
    cwist_jq__answer answer;

    memset(&headers, 0, sizeof headers);
    memset(&answer, 0, sizeof answer);
    cwist_jq__headers_type(&headers, type);
    int status = headers.failed ? cwist_jq__no_memory() : check_size(queue, len, &headers);
    if (status == CWIST_SUCCESS) {
        status = check_stream_once(queue, &wait);
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__request request = {cwist_jq__nats_queue_of(queue)->jobs, payload, len,
                                     headers.list, headers.count};
        status = publish(&answer, queue, &request, &wait);
    }
    if (status == CWIST_SUCCESS) {
        status = read_id(&answer, queue, id);
    } else if (status == CWIST_JQ_LOST) {
        status = cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                "the job was sent and no reply came; it may be stored");
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__headers_clear(&headers);
    return status;
}

int cwist_jq__publish_once(cwist_jq__queue *queue, cwist_jq__request *request, bool dead,
                           const _Atomic uint64_t *lease, const cwist_jq__wait *wait)
{
    cwist_jq__backoff backoff = {0};
    cwist_jq__answer answer;
    bool sent = false;

    memset(&answer, 0, sizeof answer);
    for (;;) {
        cwist_jq__wait inside = {cwist_jq__earlier(wait->deadline, atomic_load(lease)),
                                 wait->claim};
        int last = CWIST_JQ_PENDING;
        if (!cwist_jq__passed(inside.deadline)) {
            last = publish_try(&answer, cwist_jq__nats_of(queue), request, &inside, wait->deadline);
        }
        sent = sent || last == CWIST_JQ_LOST;
        if (last == CWIST_SUCCESS && !cwist_jq__answer_is_temporary(&answer)) {
            bool there = answer.error == 0 || answer.error == CWIST_JQ_ERR_WRONG_LAST;
            int status = there ? CWIST_SUCCESS : cwist_jq__answer_fail(&answer, "not stored");
            cwist_jq__answer_clear(&answer);
            return status;
        }
        int status = last < 0 ? last : CWIST_SUCCESS;
        if (status == CWIST_SUCCESS && last != CWIST_JQ_PENDING) {
            status = prepare_again(queue, last, dead ? FOR_DEAD : FOR_COPY, &backoff, &inside);
        }
        bool over = last == CWIST_JQ_PENDING || status == CWIST_JQ_PENDING ||
                    (status == CWIST_ERROR_IO && cwist_jq__passed(inside.deadline));
        if (over) {
            status = sent ? cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                           "the message was sent and no reply came")
                     : cwist_jq__passed(atomic_load(lease))
                         ? cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the lease ran out")
                         : not_stored(last, &answer);
        }
        cwist_jq__answer_clear(&answer);
        if (status != CWIST_SUCCESS) {
            return status;
        }
    }
}
