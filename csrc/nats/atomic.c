/*
 * Batches of all or none: the server keeps the messages of a batch aside until the last one, which
 * commits it, and then stores them in one step. The stream must allow it, and servers before 2.12
 * take no notice of the setting, so the setting is read back before anything is sent.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

#define ERR_ATOMIC_DISABLED 10174
#define ERR_ATOMIC_INCOMPLETE 10176

typedef struct batch {
    cwist_jq__queue *queue;
    const cwist_job_item_t *items;
    size_t count;
    const cwist_jq__wait *wait;
    char id[24];
    bool committed; /* the commit is on its way */
    uint64_t last;  /* the sequence of the last job */
} batch;

/* ---- the stream's leave ---- */

static int unsupported(cwist_jq__queue *queue)
{
    const char *version = cwist_jq__nats_of(queue)->version;

    return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                          "the NATS server is version %s; 2.12 or newer is needed for batches of "
                          "all or none",
                          version[0] != '\0' ? version : "(unknown)");
}

/* Sends the server's own configuration back with the leave in it; UNSUPPORTED if it is not kept. */
static int ask_leave(cwist_jq__queue *queue, cwist_jq__json config, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;
    cwist_jq__text text;
    char *subject = cwist_jq__format("$JS.API.STREAM.UPDATE.%s", own->stream);
    int status = CWIST_SUCCESS;

    memset(&text, 0, sizeof text);
    memset(&answer, 0, sizeof answer);
    cwist_jq__text_object_with(&text, config, "allow_atomic", "true");
    if (subject == NULL || text.failed) {
        status = cwist_jq__no_memory();
    } else {
        status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, text.data, wait);
    }
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "cannot set allow_atomic on the stream");
    } else if (status == CWIST_SUCCESS) {
        cwist_jq__json kept = cwist_jq__json_member(answer.json, "config");
        if (!cwist_jq__json_true(cwist_jq__json_member(kept, "allow_atomic"))) {
            status = unsupported(queue);
        }
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__text_clear(&text);
    cwist_jq__free(subject);
    return status;
}

/* Sees to it that the stream is there and takes such batches. */
static int ensure_leave(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;

    if (atomic_load(&own->takes_atomic)) {
        return CWIST_SUCCESS;
    }
    char *subject = cwist_jq__format("$JS.API.STREAM.INFO.%s", own->stream);
    int status = cwist_jq__ensure_jobs(queue, wait);
    memset(&answer, 0, sizeof answer);
    if (status == CWIST_SUCCESS) {
        status = subject != NULL
                     ? cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, NULL, wait)
                     : cwist_jq__no_memory();
    }
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "stream info");
    } else if (status == CWIST_SUCCESS) {
        cwist_jq__json config = cwist_jq__json_member(answer.json, "config");
        if (!cwist_jq__json_true(cwist_jq__json_member(config, "allow_atomic"))) {
            status = ask_leave(queue, config, wait);
        }
    }
    atomic_store(&own->takes_atomic, status == CWIST_SUCCESS);
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(subject);
    return status;
}

/* ---- one try ---- */

static int add_item(batch *b, cwist_jq__burst *burst, size_t i)
{
    const cwist_job_item_t *item = &b->items[i];
    bool last = i == b->count - 1;
    char number[CWIST_JQ_DIGITS + 1];
    cwist_jq__headers headers;
    int status = CWIST_SUCCESS;

    memset(&headers, 0, sizeof headers);
    (void)cwist_jq__put_number(number, i + 1);
    cwist_jq__headers_type(&headers, item->type);
    cwist_jq__headers_add(&headers, "Nats-Batch-Id", b->id);
    cwist_jq__headers_add(&headers, "Nats-Batch-Sequence", number);
    if (last) {
        cwist_jq__headers_add(&headers, "Nats-Batch-Commit", "1");
    }
    if (headers.failed) {
        status = cwist_jq__no_memory();
    } else {
        cwist_jq__request request = {cwist_jq__nats_queue_of(b->queue)->jobs,
                                     item->payload != NULL ? item->payload : "", item->len,
                                     headers.list, headers.count};
        status = cwist_jq__burst_add(burst, &request, i == 0 || last ? i : CWIST_JQ_NO_REPLY);
        b->committed = last && (status == CWIST_SUCCESS || status == CWIST_JQ_LOST);
    }
    cwist_jq__headers_clear(&headers);
    return status;
}

/* The sequence that the commit's confirmation names, if it is about the whole batch. */
static int read_commit(batch *b, const cwist_jq__answer *answer)
{
    int64_t count = cwist_jq__json_int(cwist_jq__json_member(answer->json, "count"), 0);
    int status = cwist_jq__confirmation(&b->last, answer, b->queue);

    if (status == CWIST_SUCCESS && ((size_t)count != b->count || b->last < b->count)) {
        return cwist_jq__fail(CWIST_ERROR_PROTOCOL,
                              "the server confirmed a batch of %lld jobs, not %zu",
                              (long long)count, b->count);
    }
    return status;
}

/*
 * Takes the server's two answers: to the first message, empty unless something is wrong, and to the
 * commit. *answer holds the commit's, or the error of the first.
 */
static int take_answers(batch *b, cwist_jq__burst *burst, cwist_jq__answer *answer)
{
    int status = CWIST_SUCCESS;
    bool nobody = false;

    while (burst->open > 0 && (status == CWIST_SUCCESS || status == CWIST_JQ_NO_RESPONDERS)) {
        natsMsg *reply = NULL;
        size_t slot = 0;
        status = cwist_jq__burst_next(&reply, &slot, burst, b->wait);
        nobody = nobody || status == CWIST_JQ_NO_RESPONDERS;
        bool counts = reply != NULL && status == CWIST_SUCCESS && answer->error == 0 &&
                      natsMsg_GetDataLength(reply) > 0;
        if (counts) {
            cwist_jq__answer_clear(answer);
            status = cwist_jq__answer_read(answer, reply);
        } else {
            natsMsg_Destroy(reply);
        }
    }
    if (status == CWIST_SUCCESS && nobody) {
        return CWIST_JQ_NO_RESPONDERS;
    }
    return status == CWIST_SUCCESS && answer->message == NULL ? CWIST_JQ_LOST : status;
}

static int try_once(batch *b, cwist_jq__answer *answer)
{
    cwist_jq__burst burst;
    int status = cwist_jq__burst_begin(&burst, cwist_jq__nats_of(b->queue), b->wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    b->committed = false;
    (void)snprintf(b->id, sizeof b->id, "%016llx", (unsigned long long)cwist_jq__random());
    for (size_t i = 0; i < b->count && status == CWIST_SUCCESS; i++) {
        status = add_item(b, &burst, i);
    }
    if (status == CWIST_SUCCESS && !cwist_jq__burst_flush(&burst)) {
        status = CWIST_JQ_LOST;
    }
    if (status == CWIST_SUCCESS) {
        status = take_answers(b, &burst, answer);
    }
    cwist_jq__burst_end(&burst);
    return status == CWIST_JQ_LOST && !b->committed ? CWIST_JQ_UNSENT : status;
}

/* ---- until it is stored or refused ---- */

/* SUCCESS: nothing was stored, and another try makes sense. */
static int weigh(batch *b, int last, const cwist_jq__answer *answer)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(b->queue);

    switch (last) {
    case CWIST_SUCCESS:
        if (answer->error == ERR_ATOMIC_DISABLED) {
            atomic_store(&own->takes_atomic, false);
            return CWIST_SUCCESS;
        }
        return answer->error == ERR_ATOMIC_INCOMPLETE || cwist_jq__answer_is_temporary(answer)
                   ? CWIST_SUCCESS
                   : cwist_jq__answer_fail(answer, "not stored");
    case CWIST_JQ_NO_RESPONDERS:
        atomic_store(&own->takes_atomic, false);
        return CWIST_SUCCESS;
    case CWIST_JQ_UNSENT:
        return CWIST_SUCCESS;
    case CWIST_JQ_PENDING: /* the text of lane_get stands */
        return CWIST_ERROR_IO;
    case CWIST_JQ_LOST:
        return cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                              "the batch was sent and no reply came; all of it may be stored, or "
                              "nothing");
    default:
        return last;
    }
}

static int too_late(int last, const cwist_jq__answer *answer)
{
    return last == CWIST_SUCCESS
               ? cwist_jq__answer_fail(answer, "not stored")
               : cwist_jq__fail(CWIST_ERROR_IO, "not stored: the server could not be reached");
}

static int store(batch *b)
{
    cwist_jq__backoff backoff = {0};
    cwist_jq__answer answer;
    int status = CWIST_SUCCESS;

    memset(&answer, 0, sizeof answer);
    for (;;) {
        status = ensure_leave(b->queue, b->wait);
        if (status != CWIST_SUCCESS) {
            return status;
        }
        int last = try_once(b, &answer);
        if (last == CWIST_SUCCESS && answer.error == 0) {
            status = read_commit(b, &answer);
            break;
        }
        status = weigh(b, last, &answer);
        if (status == CWIST_SUCCESS && cwist_jq__wait_backoff(b->wait, &backoff) != CWIST_SUCCESS) {
            status = too_late(last, &answer);
        }
        if (status != CWIST_SUCCESS) {
            break;
        }
        cwist_jq__answer_clear(&answer);
        memset(&answer, 0, sizeof answer);
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

int cwist_jq__nats_enqueue_all(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                               const cwist_jq__wait *wait, cwist_job_stored_t *stored)
{
    batch b = {.queue = queue, .items = items, .count = count, .wait = wait};
    int status = store(&b);

    for (size_t i = 0; i < count; i++) {
        stored[i].code = status;
        if (status == CWIST_SUCCESS) {
            (void)cwist_jq__put_number(stored[i].id, b.last - count + 1 + i);
        }
    }
    return status;
}
