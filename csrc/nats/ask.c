/* Questions to the JetStream API, many in one burst. */
#include <string.h>

#include "nats/jetstream.h"

#define TRY_MS 2000 /* how long one try waits; a reply that is later is as good as lost */

static size_t count_open(const cwist_jq__ask *asks, size_t count)
{
    size_t open = 0;

    for (size_t i = 0; i < count; i++) {
        open += asks[i].done ? 0 : 1;
    }
    return open;
}

static int add_open(cwist_jq__burst *burst, cwist_jq__ask *asks, size_t count)
{
    int status = CWIST_SUCCESS;

    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        size_t len = asks[i].body != NULL ? strlen(asks[i].body) : 0;
        cwist_jq__request request = {asks[i].subject, asks[i].body, len, NULL, 0};
        if (!asks[i].done) {
            status = cwist_jq__burst_add(burst, &request, i);
            asks[i].under_way = status == CWIST_SUCCESS || status == CWIST_JQ_LOST;
        }
    }
    return status == CWIST_JQ_UNSENT && burst->open > 0 ? CWIST_JQ_LOST : status;
}

/* Takes an answer over. One that passes by itself leaves the question open. */
static int take(cwist_jq__ask *ask, natsMsg *reply)
{
    cwist_jq__answer_clear(&ask->answer);
    ask->under_way = false;
    int status = cwist_jq__answer_read(&ask->answer, reply);
    ask->done = status == CWIST_SUCCESS && !cwist_jq__answer_is_temporary(&ask->answer);
    return status;
}

static int take_answers(cwist_jq__burst *burst, cwist_jq__ask *asks, size_t count,
                        const cwist_jq__wait *wait)
{
    int status = CWIST_SUCCESS;
    bool nobody = false;

    while (burst->open > 0 && status == CWIST_SUCCESS) {
        natsMsg *reply = NULL;
        size_t slot = 0;
        status = cwist_jq__burst_next(&reply, &slot, burst, wait);
        if (status == CWIST_SUCCESS && slot < count && asks[slot].under_way) {
            status = take(&asks[slot], reply);
        } else {
            natsMsg_Destroy(reply);
        }
        if (status == CWIST_JQ_NO_RESPONDERS) {
            nobody = true;
            status = CWIST_SUCCESS;
        }
    }
    return status == CWIST_SUCCESS && nobody ? CWIST_JQ_NO_RESPONDERS : status;
}

static int try_once(cwist_jq__nats *nats, cwist_jq__ask *asks, size_t count,
                    const cwist_jq__wait *wait)
{
    cwist_jq__wait one = {cwist_jq__earlier(wait->deadline, cwist_jq__after_ms(TRY_MS)),
                          wait->claim};
    cwist_jq__burst burst;
    int status = cwist_jq__burst_begin(&burst, nats, wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    status = add_open(&burst, asks, count);
    if (status == CWIST_SUCCESS && !cwist_jq__burst_flush(&burst)) {
        status = CWIST_JQ_LOST;
    }
    if (status == CWIST_SUCCESS) {
        status = take_answers(&burst, asks, count, &one);
    }
    for (size_t i = 0; i < count; i++) {
        bool lost = asks[i].under_way && status != CWIST_JQ_NO_RESPONDERS;
        asks[i].lost = asks[i].lost || lost;
        asks[i].under_way = false;
    }
    if (status == CWIST_JQ_LOST && !cwist_jq__passed(wait->deadline)) {
        cwist_jq__link_probe(burst.link, wait->deadline);
    }
    cwist_jq__burst_end(&burst);
    return status;
}

int cwist_jq__ask_all(cwist_jq__nats *nats, cwist_jq__ask *asks, size_t count,
                      const cwist_jq__wait *wait)
{
    cwist_jq__backoff backoff = {0};

    while (count_open(asks, count) > 0) {
        int last = try_once(nats, asks, count, wait);
        if (last < 0) {
            return last;
        }
        if (last == CWIST_JQ_PENDING) {
            return CWIST_ERROR_IO; /* the text of lane_get stands */
        }
        if (count_open(asks, count) > 0) {
            int status = cwist_jq__wait_backoff(wait, &backoff);
            if (status != CWIST_SUCCESS) {
                return status == CWIST_JQ_PENDING
                           ? cwist_jq__fail(CWIST_ERROR_IO, "the server did not answer in time")
                           : status;
            }
        }
    }
    return CWIST_SUCCESS;
}

void cwist_jq__ask_clear(cwist_jq__ask *asks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cwist_jq__answer_clear(&asks[i].answer);
        cwist_jq__free(asks[i].body);
        asks[i].body = NULL;
    }
}
