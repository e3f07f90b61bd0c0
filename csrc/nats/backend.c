/* The operations table of the NATS backend, and what belongs to a queue handle. */
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
    if (queue->max_length != 0) {
        cwist_jq__log(queue->conn, CWIST_JOB_LOG_INFO,
                      "queue %s: with max_length it takes no delayed jobs on NATS", queue->name);
    }
    return CWIST_SUCCESS;
}

static void queue_close(cwist_jq__queue *queue)
{
    cwist_jq__nats_queue *own = queue->impl;

    queue->impl = NULL;
    if (own == NULL || cwist_jq__nats_of(queue)->process != cwist_jq__process_id()) {
        return; /* a forked child leaves the parent's connection alone */
    }
    for (unsigned lane = 0; lane < CWIST_JQ_LANES; lane++) {
        while (own->free_pullers[lane] != NULL) {
            cwist_jq__puller *puller = own->free_pullers[lane];
            own->free_pullers[lane] = puller->next;
            cwist_jq__puller_free(puller);
        }
    }
    free_queue(own);
}

int cwist_jq__nats_dead_count(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__answer answer;
    int status = cwist_jq__stream_info(&answer, queue, "_DEAD", NULL, &wait);

    *count = 0;
    if (status == CWIST_SUCCESS && answer.error == 0) {
        cwist_jq__json state = cwist_jq__json_member(answer.json, "state");
        int64_t messages = cwist_jq__json_int(cwist_jq__json_member(state, "messages"), 0);
        *count = messages > 0 ? (uint64_t)messages : 0;
    } else if (status == CWIST_SUCCESS && answer.error != CWIST_JQ_ERR_STREAM_NOT_FOUND) {
        status = cwist_jq__answer_fail(&answer, "stream info");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

static const cwist_jq__ops ops = {
    .engine = "nats",
    .conn_open = cwist_jq__nats_open,
    .ping = cwist_jq__nats_ping,
    .conn_close = cwist_jq__nats_close,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .check_size = cwist_jq__nats_check_size,
    .enqueue = cwist_jq__nats_enqueue,
    .claim_start = cwist_jq__nats_claim_start,
    .claim_wait = cwist_jq__nats_claim_wait,
    .ack_and_poll = cwist_jq__nats_ack_and_poll,
    .claim_end = cwist_jq__nats_claim_end,
    .ack = cwist_jq__nats_ack,
    .retry = cwist_jq__nats_retry,
    .release = cwist_jq__nats_release,
    .bury = cwist_jq__nats_bury,
    .extend = cwist_jq__nats_extend,
    .dead_count = cwist_jq__nats_dead_count,
    .server_time = cwist_jq__nats_server_time,
    .dead_list = cwist_jq__nats_dead_list,
    .dead_find = cwist_jq__nats_dead_find,
    .dead_requeue = cwist_jq__nats_dead_requeue,
    .dead_remove = cwist_jq__nats_dead_remove,
    .stats = cwist_jq__nats_stats,
    .purge = cwist_jq__nats_purge,
    .pause = cwist_jq__nats_pause,
};

const cwist_jq__ops *const cwist_jq__backend_nats = &ops;
