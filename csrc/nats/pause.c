/* Pause: a setting of the consumer that the server keeps, from 2.11 on. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define FOR_EVER "2999-01-01T00:00:00Z"
#define RESUME_MS 20

/* Asks for the pause to end at a moment. The server's word on whether it is paused now. */
static int ask(bool *paused, cwist_jq__queue *queue, const char *until, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    char subject[CWIST_JQ_SUBJECT_SIZE];
    char body[80];

    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.PAUSE.%s." CWIST_JQ_GROUP,
                   cwist_jq__nats_queue_of(queue)->stream);
    (void)snprintf(body, sizeof body, "{\"pause_until\":\"%s\"}", until);
    int status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, body, wait);
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "cannot pause or resume the consumer");
    }
    *paused = status == CWIST_SUCCESS &&
              cwist_jq__json_true(cwist_jq__json_member(answer.json, "paused"));
    cwist_jq__answer_clear(&answer);
    return status;
}

static int is_paused(bool *paused, cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    int status = cwist_jq__consumer_info(&answer, queue, wait);

    *paused = status == CWIST_SUCCESS && answer.error == 0 &&
              cwist_jq__json_true(cwist_jq__json_member(answer.json, "paused"));
    cwist_jq__answer_clear(&answer);
    return status;
}

/*
 * A pause that is taken away wakes nobody: pulls that wait get nothing before they end (seen with
 * 2.15.1). One that runs out does. So it is made to run out at once, by the server's clock, and
 * that is waited for.
 */
static int resume(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats *nats = cwist_jq__nats_of(queue);
    cwist_jq__backoff backoff = {0};
    char until[CWIST_JQ_MOMENT_SIZE];
    bool paused = false;
    int status = is_paused(&paused, queue, wait);

    if (status == CWIST_SUCCESS && paused) {
        uint64_t late = RESUME_MS + 4 * atomic_load(&nats->round_trip_ms);
        cwist_jq__moment_write(until, cwist_jq__clock_ms(nats) + late);
        status = ask(&paused, queue, until, wait);
    }
    while (status == CWIST_SUCCESS && paused) {
        status = cwist_jq__wait_backoff(wait, &backoff);
        if (status == CWIST_SUCCESS) {
            status = is_paused(&paused, queue, wait);
        }
    }
    return status == CWIST_JQ_PENDING
               ? cwist_jq__fail(CWIST_ERROR_IO, "the server did not resume in time")
               : status;
}

int cwist_jq__nats_pause(cwist_jq__queue *queue, bool paused, uint64_t deadline)
{
    cwist_jq__nats *nats = cwist_jq__nats_of(queue);
    cwist_jq__wait wait = {deadline, NULL};
    bool now = false;

    if (cwist_jq__is_older(nats, 11)) {
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                              "the NATS server is version %s; 2.11 or newer is needed to pause a "
                              "queue",
                              nats->version);
    }
    if (!paused) {
        return resume(queue, &wait);
    }
    int status = cwist_jq__make_consumer(queue, &wait);
    if (status == CWIST_SUCCESS) {
        status = ask(&now, queue, FOR_EVER, &wait);
    }
    if (status == CWIST_SUCCESS && !now) {
        status = cwist_jq__fail(CWIST_ERROR_UNSUPPORTED, "the server did not pause the consumer");
    }
    return status;
}
