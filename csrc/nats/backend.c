/* The operations table of the NATS backend, and what belongs to a queue handle. */
#include <string.h>

#include "core/singly.h"
#include "nats/jetstream.h"
#include "platform/process.h"

cwist_jq__nats *cwist_jq__nats_of(const cwist_jq__queue *queue)
{
    return queue->conn->impl;
}

cwist_jq__nats_queue *cwist_jq__nats_queue_of(const cwist_jq__queue *queue)
{
    return queue->impl;
}

static void free_queue(cwist_jq__nats_queue *own)
{
    cwist_jq__free(own->stream);
    cwist_jq__free(own->jobs);
    cwist_jq__free(own->next);
    cwist_jq__mutex_destroy(&own->lock);
    cwist_jq__free(own);
}

static int queue_open(cwist_jq__queue *queue)
{
    cwist_jq__nats_queue *own = cwist_jq__calloc(1, sizeof *own);

    if (own == NULL) {
        return cwist_jq__no_memory();
    }
    cwist_jq__mutex_init(&own->lock);
    own->stream = cwist_jq__nats_stream(queue->name);
    if (own->stream != NULL) {
        own->jobs = cwist_jq__format("%s.jobs", own->stream);
        own->next = cwist_jq__format("$JS.API.CONSUMER.MSG.NEXT.%s." CWIST_JQ_GROUP, own->stream);
    }
    if (own->stream == NULL || own->jobs == NULL || own->next == NULL) {
        free_queue(own);
        return cwist_jq__no_memory();
    }
    queue->impl = own;
    return CWIST_SUCCESS;
}

static void queue_close(cwist_jq__queue *queue)
{
    cwist_jq__nats_queue *own = queue->impl;

    queue->impl = NULL;
    if (own == NULL || cwist_jq__nats_of(queue)->process != cwist_jq__process_id()) {
        return; /* a forked child leaves the parent's connection alone */
    }
    while (own->free_pullers != NULL) {
        cwist_jq__puller *puller = own->free_pullers;
        own->free_pullers = puller->next;
        cwist_jq__puller_free(puller);
    }
    free_queue(own);
}

static int dead_count(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__answer answer;
    char *subject =
        cwist_jq__format("$JS.API.STREAM.INFO.%s_DEAD", cwist_jq__nats_queue_of(queue)->stream);
    int status = CWIST_SUCCESS;

    memset(&answer, 0, sizeof answer);
    *count = 0;
    if (subject != NULL) {
        status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, NULL, &wait);
    } else {
        status = cwist_jq__no_memory();
    }
    if (status == CWIST_SUCCESS && answer.error == 0) {
        cwist_jq__json state = cwist_jq__json_member(answer.json, "state");
        int64_t messages = cwist_jq__json_int(cwist_jq__json_member(state, "messages"), 0);
        *count = messages > 0 ? (uint64_t)messages : 0;
    } else if (status == CWIST_SUCCESS && answer.error != CWIST_JQ_ERR_STREAM_NOT_FOUND) {
        status = cwist_jq__answer_fail(&answer, "stream info");
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(subject);
    return status;
}

/* ---- one job at a time ---- */

static int check_size(cwist_jq__queue *queue, const cwist_job_item_t *item)
{
    (void)queue;
    (void)item;
    return CWIST_SUCCESS;
}

static int enqueue_each(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                        bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored)
{
    int first = CWIST_SUCCESS;

    if (all_or_none && count > 1) {
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED, "batches of all or none");
    }
    for (size_t i = 0; i < count && first == CWIST_SUCCESS; i++) {
        const cwist_job_item_t *item = &items[i];
        const char *type = item->type != NULL && *item->type != '\0' ? item->type : NULL;
        first = cwist_jq__nats_enqueue(queue, item->payload != NULL ? item->payload : "", item->len,
                                       type, deadline, stored[i].id);
        stored[i].code = first;
    }
    return first;
}

static int claim_one(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs, size_t *count)
{
    int status = cwist_jq__nats_claim_wait(claim, until, jobs);
    *count = status == CWIST_SUCCESS ? 1 : 0;
    return status;
}

static int ack_each(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                    uint64_t deadline, int *codes)
{
    CWIST_JQ_SINGLY(cwist_jq__nats_ack(queue, jobs[i], deadline));
}

static int ack_and_poll(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                        int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got)
{
    (void)next;
    *got = 0;
    (void)ack_each(claim->queue, jobs, count, deadline, codes);
    return CWIST_SUCCESS;
}

static int retry_each(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                      uint64_t delay_ms, uint64_t deadline, int *codes)
{
    CWIST_JQ_SINGLY(cwist_jq__nats_retry(queue, jobs[i], delay_ms, deadline));
}

static int release_each(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                        uint64_t deadline, int *codes)
{
    CWIST_JQ_SINGLY(cwist_jq__nats_release(queue, jobs[i], deadline));
}

static int bury_each(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                     cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes)
{
    CWIST_JQ_SINGLY(cwist_jq__nats_bury(queue, jobs[i], cause, text, deadline));
}

static const cwist_jq__ops ops = {
    .engine = "nats",
    .conn_open = cwist_jq__nats_open,
    .ping = cwist_jq__nats_ping,
    .conn_close = cwist_jq__nats_close,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .check_size = check_size,
    .enqueue = enqueue_each,
    .claim_start = cwist_jq__nats_claim_start,
    .claim_wait = claim_one,
    .ack_and_poll = ack_and_poll,
    .claim_end = cwist_jq__nats_claim_end,
    .ack = ack_each,
    .retry = retry_each,
    .release = release_each,
    .bury = bury_each,
    .extend = cwist_jq__nats_extend,
    .dead_count = dead_count,
};

const cwist_jq__ops *const cwist_jq__backend_nats = &ops;
