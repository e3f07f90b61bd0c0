/*
 * The one consumer that all workers of a queue share. Claims make it, settle its AckWait (the
 * queue's visibility) once, and look at it again every few seconds to learn what others changed.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define LOOK_MS 4000
#define NS_PER_MS INT64_C(1000000)

static int conflict(const char *what, const char *has, const char *wants)
{
    return cwist_jq__fail(CWIST_ERROR_CONFLICT,
                          "consumer " CWIST_JQ_GROUP " exists with %s %s; this queue needs %s; "
                          "delete it and it is made again",
                          what, has, wants);
}

static int check_text(cwist_jq__json config, const char *what, const char *wants)
{
    char has[160];
    cwist_jq__json value = cwist_jq__json_member(config, what);

    if (cwist_jq__json_is(value, wants)) {
        return CWIST_SUCCESS;
    }
    cwist_jq__json_copy(value, has, sizeof has);
    return conflict(what, has[0] != '\0' ? has : "(none)", wants);
}

/* Limits that are off show as -1, as 0 or not at all. */
static int check_unlimited(cwist_jq__json config, const char *what)
{
    char has[32];
    int64_t value = cwist_jq__json_int(cwist_jq__json_member(config, what), -1);

    if (value <= 0) {
        return CWIST_SUCCESS;
    }
    (void)snprintf(has, sizeof has, "%lld", (long long)value);
    return conflict(what, has, "-1 (no limit)");
}

static int check_absent(cwist_jq__json config, const char *what)
{
    char has[80];
    cwist_jq__json value = cwist_jq__json_member(config, what);

    if (value.text == NULL || cwist_jq__json_is(value, "") || value.len <= 2) {
        return CWIST_SUCCESS; /* missing, "" or [] */
    }
    (void)snprintf(has, sizeof has, "%.*s", (int)(value.len < 70 ? value.len : 70), value.text);
    return conflict(what, has, "none");
}

static int check_consumer(const cwist_jq__nats_queue *own, cwist_jq__json config)
{
    static const char *const limits[] = {"max_deliver", "max_ack_pending", "max_batch",
                                         "max_expires", "max_bytes"};
    char filter[256];
    int status = check_text(config, "ack_policy", "explicit");

    (void)snprintf(filter, sizeof filter, "%s.>", own->stream);
    if (status == CWIST_SUCCESS) {
        status = check_text(config, "filter_subject", filter);
    }
    for (size_t i = 0; status == CWIST_SUCCESS && i < sizeof limits / sizeof *limits; i++) {
        status = check_unlimited(config, limits[i]);
    }
    if (status == CWIST_SUCCESS) {
        status = check_absent(config, "deliver_subject");
    }
    if (status == CWIST_SUCCESS) {
        status = check_absent(config, "backoff");
    }
    if (status == CWIST_SUCCESS &&
        cwist_jq__json_true(cwist_jq__json_member(config, "headers_only"))) {
        status = conflict("headers_only", "true", "false");
    }
    return status;
}

/* A consumer of another name stands in the way: names it. */
static int name_the_other(cwist_jq__queue *queue, const cwist_jq__answer *refused,
                          const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer names;
    cwist_jq__json item = {NULL, 0};
    char other[128] = "(unknown)";
    char *subject = cwist_jq__format("$JS.API.CONSUMER.NAMES.%s", own->stream);

    memset(&names, 0, sizeof names);
    if (subject != NULL &&
        cwist_jq__api(&names, cwist_jq__nats_of(queue), subject, NULL, wait) == CWIST_SUCCESS &&
        cwist_jq__json_each(cwist_jq__json_member(names.json, "consumers"), &item)) {
        cwist_jq__json_copy(item, other, sizeof other);
    }
    cwist_jq__answer_clear(&names);
    cwist_jq__free(subject);
    return cwist_jq__fail(CWIST_ERROR_CONFLICT,
                          "stream %s has consumer %s; this queue needs " CWIST_JQ_GROUP
                          " alone: %s",
                          own->stream, other, refused->text);
}

/* Sends a whole consumer configuration: creates or updates. The answer is the caller's to clear. */
static int put_consumer(cwist_jq__answer *answer, cwist_jq__queue *queue, const char *config,
                        const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    char *subject =
        cwist_jq__format("$JS.API.CONSUMER.DURABLE.CREATE.%s." CWIST_JQ_GROUP, own->stream);
    char *body = cwist_jq__format("{\"stream_name\":\"%s\",\"config\":%s}", own->stream, config);
    int status = subject != NULL && body != NULL
                     ? cwist_jq__api(answer, cwist_jq__nats_of(queue), subject, body, wait)
                     : cwist_jq__no_memory();

    if (status == CWIST_SUCCESS && (answer->error == 10099 || answer->error == 10100)) {
        status = name_the_other(queue, answer, wait);
    } else if (status == CWIST_SUCCESS && answer->error != 0 &&
               answer->error != CWIST_JQ_ERR_STREAM_NOT_FOUND) {
        status = cwist_jq__answer_fail(answer, "cannot create or update the consumer");
    }
    cwist_jq__free(subject);
    cwist_jq__free(body);
    return status;
}

static int create_consumer(cwist_jq__answer *answer, cwist_jq__queue *queue,
                           const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    char *config = cwist_jq__format(
        "{\"durable_name\":\"" CWIST_JQ_GROUP "\",\"deliver_policy\":\"all\","
        "\"ack_policy\":\"explicit\",\"filter_subject\":\"%s.>\",\"replay_policy\":\"instant\","
        "\"ack_wait\":%lld,\"max_deliver\":-1,\"max_ack_pending\":-1,\"max_waiting\":100000}",
        own->stream, (long long)queue->visibility_ms * NS_PER_MS);
    int status = config != NULL ? put_consumer(answer, queue, config, wait) : cwist_jq__no_memory();

    cwist_jq__free(config);
    return status;
}

/* Sends the server's own configuration back with our AckWait in it. */
static int set_visibility(cwist_jq__queue *queue, cwist_jq__json config, const cwist_jq__wait *wait)
{
    cwist_jq__text text;
    cwist_jq__answer answer;
    char ns[32];

    memset(&text, 0, sizeof text);
    memset(&answer, 0, sizeof answer);
    (void)snprintf(ns, sizeof ns, "%lld", (long long)queue->visibility_ms * NS_PER_MS);
    cwist_jq__text_object_with(&text, config, "ack_wait", ns);
    int status =
        text.failed ? cwist_jq__no_memory() : put_consumer(&answer, queue, text.data, wait);
    cwist_jq__answer_clear(&answer);
    cwist_jq__text_clear(&text);
    return status;
}

/*
 * Takes in what the consumer is like. The first look of a handle sets its visibility; later looks
 * only learn.
 */
static int take_in(cwist_jq__queue *queue, const cwist_jq__answer *answer,
                   const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__json config = cwist_jq__json_member(answer->json, "config");
    int64_t ns = cwist_jq__json_int(cwist_jq__json_member(config, "ack_wait"), 0);
    uint64_t has = (uint64_t)(ns > 0 ? ns : 0) / NS_PER_MS;
    int status = check_consumer(own, config);

    if (status == CWIST_SUCCESS && has != queue->visibility_ms &&
        !atomic_load(&own->visibility_set)) {
        status = set_visibility(queue, config, wait);
        if (status == CWIST_SUCCESS) {
            cwist_jq__visibility_taken_over(queue, has);
            has = queue->visibility_ms;
        }
    }
    if (status == CWIST_SUCCESS) {
        atomic_store(&own->visibility_set, true);
        atomic_store(&queue->server_visibility_ms, has);
    }
    return status;
}

/* One look at the consumer; makes what is missing. */
static int look_at_consumer(cwist_jq__answer *answer, cwist_jq__queue *queue,
                            const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    char *subject = cwist_jq__format("$JS.API.CONSUMER.INFO.%s." CWIST_JQ_GROUP, own->stream);
    int status = subject != NULL
                     ? cwist_jq__api(answer, cwist_jq__nats_of(queue), subject, NULL, wait)
                     : cwist_jq__no_memory();

    if (status == CWIST_SUCCESS && answer->error == CWIST_JQ_ERR_CONSUMER_NOT_FOUND) {
        cwist_jq__answer_clear(answer);
        status = create_consumer(answer, queue, wait);
    }
    if (status == CWIST_SUCCESS && answer->error == CWIST_JQ_ERR_STREAM_NOT_FOUND) {
        cwist_jq__answer_clear(answer);
        status = cwist_jq__ensure_jobs(queue, wait);
        if (status == CWIST_SUCCESS) {
            status = create_consumer(answer, queue, wait);
        }
    }
    if (status == CWIST_SUCCESS && answer->error != 0) {
        status = cwist_jq__answer_fail(answer, "consumer info");
    }
    if (status == CWIST_SUCCESS) {
        status = take_in(queue, answer, wait);
    }
    cwist_jq__free(subject);
    return status;
}

int cwist_jq__make_consumer(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;

    if (atomic_load(&cwist_jq__nats_queue_of(queue)->consumer_known)) {
        return CWIST_SUCCESS;
    }
    int status = cwist_jq__consumer_info(&answer, queue, wait);
    if (status == CWIST_SUCCESS && answer.error != 0) {
        cwist_jq__answer_clear(&answer);
        status = cwist_jq__ensure_jobs(queue, wait);
        if (status == CWIST_SUCCESS) {
            status = create_consumer(&answer, queue, wait);
        }
        if (status == CWIST_SUCCESS && answer.error != 0) {
            status = cwist_jq__answer_fail(&answer, "cannot create the consumer");
        }
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

/* Once for each handle: what a killed server kept of acked jobs. */
static int sweep_once(cwist_jq__queue *queue, const cwist_jq__answer *consumer,
                      const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__json floor = cwist_jq__json_member(consumer->json, "ack_floor");
    int64_t sequence = cwist_jq__json_int(cwist_jq__json_member(floor, "stream_seq"), 0);
    int status = cwist_jq__sweep(queue, sequence, wait);

    own->swept = own->swept || status == CWIST_SUCCESS;
    return status;
}

static bool is_settled(const cwist_jq__nats_queue *own)
{
    return atomic_load(&own->consumer_known) && !cwist_jq__passed(atomic_load(&own->look_at));
}

/*
 * Becomes the one thread in setup. *mine is false when there is nothing to do: somebody else did
 * it, or is only taking another look.
 */
static int enter_setup(bool *mine, cwist_jq__nats_queue *own, const cwist_jq__wait *wait)
{
    int status = CWIST_SUCCESS;

    *mine = false;
    while (status == CWIST_SUCCESS && !is_settled(own)) {
        *mine = !atomic_exchange(&own->in_setup, true);
        if (*mine || atomic_load(&own->consumer_known)) {
            break;
        }
        status = cwist_jq__wait_check(wait);
        cwist_jq__sleep_until(cwist_jq__after_ms(1));
    }
    return status == CWIST_JQ_PENDING
               ? cwist_jq__fail(CWIST_ERROR_IO, "the server did not answer in time")
               : status;
}

static int set_up(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;
    int status = CWIST_SUCCESS;

    memset(&answer, 0, sizeof answer);
    if (!atomic_load(&own->consumer_known)) {
        status = cwist_jq__ensure_jobs(queue, wait);
        if (status == CWIST_SUCCESS) {
            status = cwist_jq__ensure_dead(queue, wait);
        }
    }
    if (status == CWIST_SUCCESS) {
        status = look_at_consumer(&answer, queue, wait);
    }
    if (status == CWIST_SUCCESS && !own->swept) {
        status = sweep_once(queue, &answer, wait);
    }
    if (status == CWIST_SUCCESS) {
        atomic_store(&own->look_at, cwist_jq__after_ms(LOOK_MS));
        atomic_store(&own->consumer_known, true);
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

int cwist_jq__ensure_consumer(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    bool mine = false;
    int status = enter_setup(&mine, own, wait);

    if (status == CWIST_SUCCESS && mine) {
        status = set_up(queue, wait);
    }
    if (mine) {
        atomic_store(&own->in_setup, false);
    }
    return status;
}

void cwist_jq__learn_visibility(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);

    if (is_settled(own) || !atomic_load(&own->consumer_known) ||
        atomic_exchange(&own->in_setup, true)) {
        return;
    }
    cwist_jq__answer answer;
    char *subject = cwist_jq__format("$JS.API.CONSUMER.INFO.%s." CWIST_JQ_GROUP, own->stream);
    if (subject != NULL) {
        int status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, NULL, wait);
        if (status == CWIST_SUCCESS && answer.error == 0 &&
            take_in(queue, &answer, wait) == CWIST_SUCCESS) {
            atomic_store(&own->look_at, cwist_jq__after_ms(LOOK_MS));
        }
        cwist_jq__answer_clear(&answer);
    }
    cwist_jq__free(subject);
    atomic_store(&own->in_setup, false);
}

void cwist_jq__forget(cwist_jq__queue *queue)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);

    atomic_store(&own->stream_known, false);
    atomic_store(&own->consumer_known, false);
}
