/*
 * Acknowledgements, one or many: all but the last are only sent, and the answer to the last proves
 * that the server had the others before. The server does not tell an old delivery from a new one,
 * so nothing is sent unless the lease of this delivery still runs, and each try looks again.
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
 * these leases shorter too. What cannot be learned in time changes nothing.
 */
void cwist_jq__lease_review(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                            const cwist_jq__wait *wait)
{
    cwist_jq__wait look = {wait->deadline, wait->claim};
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);

    if (cwist_jq__passed(atomic_load(&own->look_at))) {
        look.deadline = cwist_jq__earlier(wait->deadline, cwist_jq__after_ms(REVIEW_MS));
        cwist_jq__learn_visibility(queue, &look);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t ends = cwist_jq__lease_end(queue, atomic_load(&jobs[i]->lease_starts));
        if (ends < atomic_load(&jobs[i]->lease_ends)) {
            atomic_store(&jobs[i]->lease_ends, ends);
        }
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

static bool is_open(const cwist_jq__ending *ending, size_t i)
{
    return ending->codes[i] == CWIST_JQ_PENDING;
}

static void close_job(cwist_jq__ending *ending, size_t i, int code)
{
    ending->codes[i] = code;
    if (code != CWIST_SUCCESS) {
        cwist_jq__failure_note(ending->failure, ending->first + i, code);
    }
}

static void close_open(cwist_jq__ending *ending, int code)
{
    for (size_t i = 0; i < ending->count; i++) {
        if (is_open(ending, i)) {
            close_job(ending, i, code);
        }
    }
}

static uint64_t lease_of(const cwist_jq__ending *ending, size_t i)
{
    return ending->fenced ? atomic_load(&ending->jobs[i]->lease_ends) : CWIST_JQ_NEVER;
}

static int not_confirmed(void)
{
    return cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN, "sent, and the server did not confirm it");
}

/*
 * Closes what may not be sent any more. Tells how many may, which is the last of them, and until
 * when one of them may be.
 */
static size_t count_open(cwist_jq__ending *ending, size_t *last, uint64_t *until)
{
    size_t open = 0;

    *until = 0;
    for (size_t i = 0; i < ending->count; i++) {
        uint64_t lease = lease_of(ending, i);
        if (is_open(ending, i) && cwist_jq__passed(lease)) {
            close_job(ending, i, ending->sent ? not_confirmed() : lease_lost());
        } else if (is_open(ending, i)) {
            *last = i;
            *until = lease > *until ? lease : *until;
            open++;
        }
    }
    return open;
}

/*
 * Begins a try, now that there is a link: until when its answer is waited for. An answer counts
 * also when it comes after `wait`, by which the try must be sent; when there will be no second try
 * it is waited for until the deadline of the call.
 */
static cwist_jq__wait begin_try(cwist_jq__ending *ending, const cwist_jq__wait *wait,
                                uint64_t deadline)
{
    uint64_t soon = cwist_jq__after_ms(TRY_MS);

    ending->sent_at = cwist_jq__now();
    return (cwist_jq__wait){wait->deadline < soon ? deadline : soon, wait->claim};
}

#define WORD_SIZE 64

/* What is said of a job; `word` has WORD_SIZE bytes for it. */
static cwist_jq__request say(const cwist_jq__ending *ending, size_t i, char *word)
{
    uint64_t delay_ms = ending->delays_ms != NULL ? ending->delays_ms[i] : 0;

    if (delay_ms == 0) {
        return (cwist_jq__request){ending->jobs[i]->receipt, ending->word, ending->word_len, NULL,
                                   0};
    }
    int len = snprintf(word, WORD_SIZE, "%s {\"delay\": %llu}", ending->word,
                       (unsigned long long)(delay_ms * CWIST_JQ_MS));
    return (cwist_jq__request){ending->jobs[i]->receipt, word, (size_t)len, NULL, 0};
}

/* Adds the acknowledgements that are open to a burst; the last one asks for an answer. */
static int add_open(cwist_jq__ending *ending, cwist_jq__burst *burst, size_t last)
{
    char word[WORD_SIZE];
    int status = CWIST_SUCCESS;

    for (size_t i = 0; i <= last && status == CWIST_SUCCESS; i++) {
        cwist_jq__request request = say(ending, i, word);
        if (is_open(ending, i)) {
            status = cwist_jq__burst_add(burst, &request, i == last ? i : CWIST_JQ_NO_REPLY);
        }
    }
    return status;
}

/*
 * Waits for the answer to the last. Deliveries, of the pull that went along or of another thread's,
 * may stand before it: while these come it is waited for, until the deadline of the call, or half
 * of the time until then if there may be another try.
 */
static int await_last(const cwist_jq__ending *ending, cwist_jq__burst *burst,
                      cwist_jq__wait answering, uint64_t deadline)
{
    uint64_t half = cwist_jq__after_ms(cwist_jq__ms_left(deadline) / 2);
    uint64_t until = ending->repeat ? half : deadline;
    uint64_t count = cwist_jq__link_messages(burst->link);
    natsMsg *reply = NULL;
    uint64_t before = 0;
    size_t slot = 0;
    int status = CWIST_SUCCESS;

    do {
        before = count;
        status = cwist_jq__burst_next(&reply, &slot, burst, &answering);
        natsMsg_Destroy(reply);
        if (status == CWIST_JQ_LOST) {
            count = cwist_jq__link_messages(burst->link);
            answering.deadline = cwist_jq__earlier(until, cwist_jq__after_ms(TRY_MS));
        }
    } while (status == CWIST_JQ_LOST && count != before && cwist_jq__link_usable(burst->link) &&
             !cwist_jq__passed(until));
    return status;
}

/*
 * Sends what is open in one burst and waits for the answer to the last of it. Getting a link may
 * take as long as the last lease runs, so each lease is looked at again before anything is sent.
 */
static int send_together(cwist_jq__ending *ending, const cwist_jq__wait *wait, uint64_t deadline)
{
    cwist_jq__wait answering;
    cwist_jq__burst burst;
    uint64_t until = 0;
    size_t last = 0;
    int status = cwist_jq__burst_begin(&burst, cwist_jq__nats_of(ending->queue), wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    answering = begin_try(ending, wait, deadline);
    bool late = cwist_jq__passed(wait->deadline) || count_open(ending, &last, &until) == 0;
    status = late ? CWIST_JQ_PENDING : add_open(ending, &burst, last);
    if (status == CWIST_SUCCESS && ending->puller != NULL && ending->puller->link == burst.link) {
        (void)cwist_jq__poll(ending->queue, ending->puller, ending->most);
    }
    if (status == CWIST_SUCCESS && !cwist_jq__burst_flush(&burst)) {
        status = CWIST_JQ_LOST;
    }
    if (status == CWIST_SUCCESS) {
        status = await_last(ending, &burst, answering, deadline);
    }
    if (status == CWIST_JQ_UNSENT && last > 0) {
        status = CWIST_JQ_LOST; /* a part may have left */
    }
    if (status == CWIST_JQ_LOST) {
        cwist_jq__link_probe(burst.link, wait->deadline);
    }
    cwist_jq__burst_end(&burst);
    return status;
}

static int send_alone(cwist_jq__ending *ending, size_t last, const cwist_jq__wait *wait,
                      uint64_t deadline)
{
    char word[WORD_SIZE];
    cwist_jq__link *link = NULL;
    natsMsg *reply = NULL;
    cwist_jq__request request = say(ending, last, word);
    int status = cwist_jq__link_get(&link, cwist_jq__nats_of(ending->queue), wait);

    if (status == CWIST_SUCCESS && cwist_jq__passed(wait->deadline)) {
        status = CWIST_JQ_PENDING;
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__wait answering = begin_try(ending, wait, deadline);
        status = cwist_jq__request_send(&reply, link, &request, &answering);
        if (status == CWIST_JQ_LOST) {
            cwist_jq__link_probe(link, wait->deadline);
        }
    }
    natsMsg_Destroy(reply);
    cwist_jq__link_unref(link);
    return status;
}

/* One try, if it can be sent before `wait` ends. PENDING: it could not. */
static int confirm_once(cwist_jq__ending *ending, size_t open, size_t last,
                        const cwist_jq__wait *wait, uint64_t deadline)
{
    return open == 1 && ending->puller == NULL ? send_alone(ending, last, wait, deadline)
                                               : send_together(ending, wait, deadline);
}

/* What becomes of what is open when there will be no further try. */
static int give_up(const cwist_jq__ending *ending, int last)
{
    if (ending->sent) {
        return not_confirmed();
    }
    return last == CWIST_JQ_PENDING
               ? CWIST_ERROR_IO /* the text of link_get stands */
               : cwist_jq__fail(CWIST_ERROR_IO, "the server could not be reached");
}

void cwist_jq__confirm(cwist_jq__ending *ending, const cwist_jq__wait *wait)
{
    cwist_jq__backoff backoff = {0};
    int result = CWIST_SUCCESS;

    for (size_t i = 0; i < ending->count; i++) {
        ending->codes[i] = CWIST_JQ_PENDING;
    }
    for (;;) {
        size_t last = 0;
        uint64_t until = 0;
        size_t open = count_open(ending, &last, &until);
        if (open == 0) {
            return;
        }
        cwist_jq__wait inside = {cwist_jq__earlier(wait->deadline, until), wait->claim};
        if (cwist_jq__passed(wait->deadline) || (ending->sent && !ending->repeat)) {
            close_open(ending, give_up(ending, result));
            return;
        }
        result = confirm_once(ending, open, last, &inside, wait->deadline);
        ending->puller = NULL; /* it goes along with the first try only */
        if (result == CWIST_SUCCESS || result < 0) {
            close_open(ending, result);
            return;
        }
        ending->sent = ending->sent || result == CWIST_JQ_LOST;
        if (result == CWIST_JQ_NO_RESPONDERS) {
            int status = look_for_consumer(ending->queue, &inside);
            if (status != CWIST_SUCCESS && status != CWIST_ERROR_IO) {
                close_open(ending, status);
                return;
            }
        }
        if (result != CWIST_JQ_PENDING && !(ending->sent && !ending->repeat)) {
            (void)cwist_jq__wait_backoff(&inside, &backoff);
        }
    }
}

/* Confirms all of a batch, in pieces; the pull goes along with the last. */
static void confirm_pieces(cwist_jq__ending *ending, uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__puller *puller = ending->puller;
    size_t count = ending->count;

    cwist_jq__lease_review(ending->queue, ending->jobs, count, &wait);
    for (size_t done = 0; done < count; done += ending->count) {
        size_t left = count - done;
        ending->first += done > 0 ? ending->count : 0;
        ending->jobs += done > 0 ? ending->count : 0;
        ending->codes += done > 0 ? ending->count : 0;
        ending->delays_ms += done > 0 && ending->delays_ms != NULL ? ending->count : 0;
        ending->count = left < CWIST_JQ_BURST_MAX ? left : CWIST_JQ_BURST_MAX;
        ending->puller = left == ending->count ? puller : NULL;
        ending->sent = false;
        cwist_jq__confirm(ending, &wait);
    }
}

/* Acks a batch. `puller`: NULL, or what asks for `most` deliveries in the same burst. */
static int end_all(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                   cwist_jq__puller *puller, size_t most, uint64_t deadline, int *codes)
{
    cwist_jq__failure failure = {0};
    cwist_jq__ending ending = {.queue = queue,
                               .jobs = jobs,
                               .count = count,
                               .codes = codes,
                               .failure = &failure,
                               .word = "+ACK",
                               .word_len = 4,
                               .fenced = true,
                               .repeat = true,
                               .puller = puller,
                               .most = most};

    confirm_pieces(&ending, deadline);
    return cwist_jq__failure_tell(&failure);
}

int cwist_jq__nats_ack(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                       uint64_t deadline, int *codes)
{
    return end_all(queue, jobs, count, NULL, 0, deadline, codes);
}

void cwist_jq__nats_ack_with_pull(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                                  cwist_jq__puller *puller, size_t most, uint64_t deadline,
                                  int *codes)
{
    (void)end_all(queue, jobs, count, puller, most, deadline, codes);
}

/*
 * When a nack arrived although its answer did not, the job may be running elsewhere, and a second
 * would start it once more. Only a delay that outlasts the leases rules that out.
 */
static bool outlasts(cwist_jq__job *const *jobs, size_t count, const uint64_t *delays_ms)
{
    for (size_t i = 0; i < count; i++) {
        if (delays_ms[i] <= cwist_jq__ms_left(atomic_load(&jobs[i]->lease_ends))) {
            return false;
        }
    }
    return true;
}

int cwist_jq__nats_retry(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                         const uint64_t *delays_ms, uint64_t deadline, int *codes)
{
    cwist_jq__failure failure = {0};
    cwist_jq__ending ending = {.queue = queue,
                               .jobs = jobs,
                               .count = count,
                               .codes = codes,
                               .failure = &failure,
                               .word = "-NAK",
                               .word_len = 4,
                               .delays_ms = delays_ms,
                               .fenced = true,
                               .repeat = outlasts(jobs, count, delays_ms)};

    confirm_pieces(&ending, deadline);
    return cwist_jq__failure_tell(&failure);
}

int cwist_jq__nats_extend(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                          uint64_t deadline, int *codes)
{
    cwist_jq__failure failure = {0};
    cwist_jq__ending ending = {.queue = queue,
                               .jobs = jobs,
                               .count = count, /* at most CWIST_JQ_PIECE, so it is one burst */
                               .codes = codes,
                               .failure = &failure,
                               .word = "+WPI",
                               .word_len = 4,
                               .fenced = true,
                               .repeat = true};

    confirm_pieces(&ending, deadline);
    for (size_t i = 0; i < count; i++) {
        if (codes[i] == CWIST_SUCCESS) {
            atomic_store(&jobs[i]->lease_starts, ending.sent_at);
            atomic_store(&jobs[i]->lease_ends, cwist_jq__lease_end(queue, ending.sent_at));
        }
    }
    return cwist_jq__failure_tell(&failure);
}
