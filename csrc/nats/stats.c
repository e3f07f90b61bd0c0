/* What a queue holds, by the server, and the server's clock. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

int cwist_jq__consumer_info(cwist_jq__answer *answer, cwist_jq__queue *queue,
                            const cwist_jq__wait *wait)
{
    char subject[CWIST_JQ_SUBJECT_SIZE];
    uint64_t asked = cwist_jq__now();

    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s." CWIST_JQ_GROUP,
                   cwist_jq__nats_queue_of(queue)->stream);
    int status = cwist_jq__api(answer, cwist_jq__nats_of(queue), subject, NULL, wait);
    if (status == CWIST_SUCCESS && answer->error != 0 && answer->http != 404) {
        status = cwist_jq__answer_fail(answer, "consumer info");
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__clock_note(cwist_jq__nats_of(queue), answer, asked);
    }
    return status;
}

/* ---- the server's clock ---- */

/*
 * A server below 2.10 tells its time only as the moment at which something was made: here a
 * consumer of the dead letters, which it deletes by itself.
 */
static int time_of_old(cwist_jq__queue *queue, const cwist_jq__wait *wait, uint64_t *now_ms)
{
    const char *stream = cwist_jq__nats_queue_of(queue)->stream;
    cwist_jq__answer answer;
    char subject[CWIST_JQ_SUBJECT_SIZE];
    char *body = cwist_jq__format(
        "{\"stream_name\":\"%s_DEAD\",\"config\":{\"deliver_policy\":\"new\",\"ack_policy\":"
        "\"none\",\"mem_storage\":true,\"inactive_threshold\":1000000000}}",
        stream);
    int status = cwist_jq__ensure_dead(queue, wait);

    memset(&answer, 0, sizeof answer);
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.%s_DEAD", stream);
    if (body == NULL) {
        status = cwist_jq__no_memory();
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, body, wait);
    }
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "the server's time");
    } else if (status == CWIST_SUCCESS) {
        *now_ms = cwist_jq__moment_read(cwist_jq__json_member(answer.json, "created"));
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(body);
    return status;
}

int cwist_jq__nats_server_time(cwist_jq__queue *queue, uint64_t deadline, uint64_t *now_ms)
{
    cwist_jq__nats *nats = cwist_jq__nats_of(queue);
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__answer answer;
    uint64_t asked = cwist_jq__now();
    int status = CWIST_SUCCESS;

    if (!cwist_jq__clock_known(nats) && !nats->below_2_10) {
        status = cwist_jq__stream_info(&answer, queue, "", NULL, &wait);
        if (status == CWIST_SUCCESS) {
            cwist_jq__clock_note(nats, &answer, asked);
        }
        cwist_jq__answer_clear(&answer);
    }
    if (status == CWIST_SUCCESS && cwist_jq__clock_known(nats)) {
        *now_ms = cwist_jq__clock_ms(nats);
        return CWIST_SUCCESS;
    }
    return status == CWIST_SUCCESS ? time_of_old(queue, &wait, now_ms) : status;
}

/* ---- statistics ---- */

/* Each delayed job has a subject of its own: the server counts them, and lists none. */
static int count_delayed(uint64_t *count, cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    char body[CWIST_JQ_SUBJECT_SIZE];

    (void)snprintf(body, sizeof body, "{\"subjects_filter\":\"%s=wait.>\",\"offset\":1000000000}",
                   cwist_jq__nats_queue_of(queue)->stream);
    int status = cwist_jq__stream_info(&answer, queue, "", body, wait);
    if (status == CWIST_SUCCESS && answer.error == 0) {
        *count = cwist_jq__json_count(answer.json, "total");
    } else if (status == CWIST_SUCCESS && !cwist_jq__answer_is_gone(&answer)) {
        status = cwist_jq__answer_fail(&answer, "stream info");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

/* How long the first job at or behind a sequence has been there. */
static int oldest_age(uint64_t *age_ms, cwist_jq__queue *queue, uint64_t from,
                      const cwist_jq__wait *wait)
{
    const char *stream = cwist_jq__nats_queue_of(queue)->stream;
    cwist_jq__answer answer;
    char body[CWIST_JQ_SUBJECT_SIZE];
    uint64_t stored = 0;
    uint64_t now = 0;

    (void)snprintf(body, sizeof body, "{\"seq\":%llu,\"next_by_subj\":\"%s.>\"}",
                   (unsigned long long)from, stream);
    int status = cwist_jq__get_message(&answer, queue, "", body, wait);
    if (status == CWIST_SUCCESS && answer.error == 0) {
        cwist_jq__json message = cwist_jq__json_member(answer.json, "message");
        stored = cwist_jq__moment_read(cwist_jq__json_member(message, "time"));
    } else if (status == CWIST_SUCCESS && !cwist_jq__answer_is_gone(&answer)) {
        status = cwist_jq__answer_fail(&answer, "cannot read the oldest job");
    }
    cwist_jq__answer_clear(&answer);
    if (status == CWIST_SUCCESS && stored != 0) {
        status = cwist_jq__nats_server_time(queue, wait->deadline, &now);
        *age_ms = now > stored ? now - stored : 1; /* 0 would mean that there is none */
    }
    return status;
}

/* What the consumer tells. Without one nothing was ever claimed. */
static int read_consumer(cwist_job_stats_t *stats, cwist_jq__queue *queue, uint64_t stored,
                         uint64_t *next, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    int status = cwist_jq__consumer_info(&answer, queue, wait);

    *next = 1;
    if (status == CWIST_SUCCESS && answer.error != 0) {
        stats->ready = stored - (stats->delayed < stored ? stats->delayed : stored);
    } else if (status == CWIST_SUCCESS) {
        stats->ready = cwist_jq__json_count(answer.json, "num_pending");
        stats->claimed = cwist_jq__json_count(answer.json, "num_ack_pending");
        stats->consumers = cwist_jq__json_count(answer.json, "num_waiting");
        if (stats->consumers == 0 && stats->claimed != 0) {
            stats->consumers = 1; /* who holds them the server does not tell */
        }
        stats->paused = cwist_jq__json_true(cwist_jq__json_member(answer.json, "paused"));
        *next =
            cwist_jq__json_count(cwist_jq__json_member(answer.json, "delivered"), "stream_seq") + 1;
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

int cwist_jq__nats_stats(cwist_jq__queue *queue, uint64_t deadline, cwist_job_stats_t *stats)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__answer answer;
    uint64_t stored = 0;
    uint64_t next = 0;
    bool delays = false;
    int status = cwist_jq__stream_info(&answer, queue, "", NULL, &wait);
    bool there = status == CWIST_SUCCESS && answer.error == 0;

    if (there) {
        stored = cwist_jq__json_count(cwist_jq__json_member(answer.json, "state"), "messages");
        delays = cwist_jq__has_waiting(&answer, queue);
    } else if (status == CWIST_SUCCESS && !cwist_jq__answer_is_gone(&answer)) {
        status = cwist_jq__answer_fail(&answer, "stream info");
    }
    cwist_jq__answer_clear(&answer);
    if (status == CWIST_SUCCESS && delays) {
        status = count_delayed(&stats->delayed, queue, &wait);
    }
    if (status == CWIST_SUCCESS && there) {
        status = read_consumer(stats, queue, stored, &next, &wait);
    }
    if (status == CWIST_SUCCESS && stats->ready != 0) {
        status = oldest_age(&stats->oldest_ready_ms, queue, next, &wait);
    }
    return status == CWIST_SUCCESS ? cwist_jq__nats_dead_count(queue, deadline, &stats->dead)
                                   : status;
}
