/*
 * Acknowledgements. The server does not tell an old delivery from a new one, so nothing is sent
 * unless the lease of this delivery still runs, and each try looks again.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define TRY_MS 1000   /* how long one try waits for the server's confirmation */
#define REVIEW_MS 250 /* how long the server is asked for the visibility */

static int lease_lost(void)
{
    return cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the lease of this delivery ran out");
}

/*
 * AckWait holds for deliveries that are out already, so a worker that set a shorter one has made
 * this lease shorter too. What cannot be learned in time changes nothing.
 */
void cwist_jq__lease_review(cwist_jq__queue *queue, cwist_jq__job *job, const cwist_jq__wait *wait)
{
    cwist_jq__wait look = {cwist_jq__earlier(wait->deadline, cwist_jq__after_ms(REVIEW_MS)),
                           wait->claim};

    if (!cwist_jq__passed(atomic_load(&job->lease_ends))) {
        cwist_jq__learn_visibility(queue, &look);
    }
    uint64_t ends = cwist_jq__lease_end(queue, atomic_load(&job->lease_starts));
    if (ends < atomic_load(&job->lease_ends)) {
        atomic_store(&job->lease_ends, ends);
    }
}

/*
 * Nobody took the acknowledgement: either the server is still starting, or the consumer was deleted
 * and the delivery with it.
 */
static int look_for_consumer(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;
    char *subject = cwist_jq__format("$JS.API.CONSUMER.INFO.%s." CWIST_JQ_GROUP, own->stream);
    int status = subject != NULL
                     ? cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, NULL, wait)
                     : cwist_jq__no_memory();

    if (subject != NULL) {
        if (status == CWIST_SUCCESS && answer.http == 404) {
            status =
                cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the consumer of this delivery was deleted");
        }
        cwist_jq__answer_clear(&answer);
    }
    cwist_jq__free(subject);
    return status;
}

/*
 * One try, if it can be sent before `wait` ends. PENDING: it could not. The answer to what was sent
 * in time counts also when it comes later; when there will be no second try it is waited for until
 * the deadline of the call.
 */
static int confirm_once(cwist_jq__queue *queue, const cwist_jq__job *job, const char *word,
                        uint64_t *sent_at, const cwist_jq__wait *wait, uint64_t deadline)
{
    cwist_jq__link *link = NULL;
    natsMsg *reply = NULL;
    cwist_jq__request request = {job->receipt, word, strlen(word), NULL, 0};
    int status = cwist_jq__link_get(&link, cwist_jq__nats_of(queue), wait);

    if (status == CWIST_SUCCESS && cwist_jq__passed(wait->deadline)) {
        status = CWIST_JQ_PENDING;
    }
    if (status == CWIST_SUCCESS) {
        uint64_t soon = cwist_jq__after_ms(TRY_MS);
        cwist_jq__wait one = {wait->deadline < soon ? deadline : soon, wait->claim};
        *sent_at = cwist_jq__now();
        status = cwist_jq__request_send(&reply, link, &request, &one);
        if (status == CWIST_JQ_LOST) {
            cwist_jq__link_probe(link, wait->deadline);
        }
    }
    natsMsg_Destroy(reply);
    cwist_jq__link_unref(link);
    return status;
}

/*
 * SUCCESS: the server has it. LEASE_LOST: the lease is over and nothing was sent. OUTCOME_UNKNOWN:
 * sent without an answer. IO: the deadline came and nothing was sent. `fenced`: the lease counts.
 * `repeat`: what got no answer may be sent again. *sent_at: the moment before the last sending.
 */
int cwist_jq__confirm(cwist_jq__queue *queue, cwist_jq__job *job, const char *word, bool fenced,
                      bool repeat, uint64_t *sent_at, const cwist_jq__wait *wait)
{
    cwist_jq__backoff backoff = {0};
    int last = CWIST_SUCCESS;
    bool sent = false;

    for (;;) {
        uint64_t lease = fenced ? atomic_load(&job->lease_ends) : CWIST_JQ_NEVER;
        cwist_jq__wait inside = {cwist_jq__earlier(wait->deadline, lease), wait->claim};
        if (cwist_jq__passed(inside.deadline) || (sent && !repeat)) {
            return sent                      ? cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                                              "sent, and the server did not confirm it")
                   : cwist_jq__passed(lease) ? lease_lost()
                   : last == CWIST_JQ_PENDING
                       ? CWIST_ERROR_IO /* the text of link_get stands */
                       : cwist_jq__fail(CWIST_ERROR_IO, "the server could not be reached");
        }
        last = confirm_once(queue, job, word, sent_at, &inside, wait->deadline);
        if (last == CWIST_SUCCESS || last < 0) {
            return last;
        }
        sent = sent || last == CWIST_JQ_LOST;
        if (last == CWIST_JQ_NO_RESPONDERS) {
            int status = look_for_consumer(queue, &inside);
            if (status != CWIST_SUCCESS && status != CWIST_ERROR_IO) {
                return status;
            }
        }
        if (last != CWIST_JQ_PENDING && !(sent && !repeat)) {
            (void)cwist_jq__wait_backoff(&inside, &backoff);
        }
    }
}

int cwist_jq__nats_ack(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};
    uint64_t sent_at = 0;

    cwist_jq__lease_review(queue, job, &wait);
    return cwist_jq__confirm(queue, job, "+ACK", true, true, &sent_at, &wait);
}

int cwist_jq__nats_retry(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t delay_ms,
                         uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};
    uint64_t sent_at = 0;
    char word[64];

    cwist_jq__lease_review(queue, job, &wait);
    if (delay_ms == 0) {
        (void)snprintf(word, sizeof word, "-NAK");
    } else {
        (void)snprintf(word, sizeof word, "-NAK {\"delay\": %llu}",
                       (unsigned long long)(delay_ms * CWIST_JQ_MS));
    }
    /*
     * When the first one arrived, the job may be running elsewhere, and a second would start it
     * once more. Only a delay that outlasts the lease rules that out.
     */
    bool repeat = !cwist_jq__passed(atomic_load(&job->lease_ends)) &&
                  delay_ms > cwist_jq__ms_left(atomic_load(&job->lease_ends));
    return cwist_jq__confirm(queue, job, word, true, repeat, &sent_at, &wait);
}

int cwist_jq__nats_extend(cwist_jq__queue *queue, cwist_jq__job *job, uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};
    uint64_t sent_at = 0;

    cwist_jq__lease_review(queue, job, &wait);
    int status = cwist_jq__confirm(queue, job, "+WPI", true, true, &sent_at, &wait);
    if (status == CWIST_SUCCESS) {
        atomic_store(&job->lease_starts, sent_at);
        atomic_store(&job->lease_ends, cwist_jq__lease_end(queue, sent_at));
    }
    return status;
}
