/*
 * Storing messages, one or a piece of a batch: each is confirmed by its stream before the call
 * returns, and each has its own result. One goes alone, several in one burst.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

/* A piece of a batch while it is published. */
typedef struct piece {
    cwist_jq__queue *queue;
    cwist_jq__post *posts;
    size_t count;
    cwist_jq__purpose goal;
    const cwist_jq__wait *wait;
    cwist_jq__failure *failure;
    cwist_jq__failure delay; /* why the server would not store a message yet */
} piece;

static bool is_open(const cwist_jq__post *post)
{
    return post->code == CWIST_JQ_PENDING;
}

/* Notes the result of a post, which is over with that. The thread's text says why. */
static void close_post(piece *p, cwist_jq__post *post, int code)
{
    post->code = code;
    if (code != CWIST_SUCCESS && code != CWIST_ERROR_NOT_SENT) {
        cwist_jq__failure_note(p->failure, post->item, code);
    }
}

void cwist_jq__post_init(cwist_jq__post *post, size_t item)
{
    memset(post, 0, sizeof *post);
    post->item = item;
    post->code = CWIST_JQ_PENDING;
}

void cwist_jq__post_clear(cwist_jq__post *post)
{
    cwist_jq__headers_clear(&post->headers);
    cwist_jq__free(post->subject);
}

/* ---- what the server answered ---- */

/* A confirmation as servers write it: {"stream":"<name>","seq":<number>}, a space allowed. */
static bool read_quickly(uint64_t *sequence, natsMsg *reply, const char *stream)
{
    static const char begin[] = "{\"stream\":\"";
    static const char middle[] = "\"seq\":";
    const char *at = natsMsg_GetData(reply);
    size_t len = (size_t)natsMsg_GetDataLength(reply);
    size_t name = strlen(stream);
    uint64_t number = 0;

    if (at == NULL || len < sizeof begin + name + sizeof middle + 2 ||
        memcmp(at, begin, sizeof begin - 1) != 0 ||
        memcmp(at + sizeof begin - 1, stream, name) != 0) {
        return false;
    }
    const char *end = at + len;
    at += sizeof begin - 1 + name;
    if (at[0] != '"' || at[1] != ',') {
        return false;
    }
    at += at[2] == ' ' ? 3 : 2;
    if ((size_t)(end - at) < sizeof middle || memcmp(at, middle, sizeof middle - 1) != 0) {
        return false;
    }
    for (at += sizeof middle - 1; at < end && *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
    }
    *sequence = number;
    return number != 0 && at + 1 == end && *at == '}';
}

int cwist_jq__not_stored(const cwist_jq__answer *answer)
{
    return cwist_jq__answer_is_full(answer)
               ? cwist_jq__fail(CWIST_ERROR_FULL,
                                "not stored: the queue is full (the server said: %s)", answer->text)
               : cwist_jq__answer_fail(answer, "not stored");
}

int cwist_jq__confirmation(uint64_t *sequence, const cwist_jq__answer *answer,
                           const cwist_jq__queue *queue)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__json stream = cwist_jq__json_member(answer->json, "stream");
    int64_t number = cwist_jq__json_int(cwist_jq__json_member(answer->json, "seq"), 0);

    if (answer->error != 0) {
        return cwist_jq__not_stored(answer);
    }
    if (!cwist_jq__json_is(stream, own->stream)) {
        char other[128];
        cwist_jq__json_copy(stream, other, sizeof other);
        return cwist_jq__fail(CWIST_ERROR_CONFLICT,
                              "subject %s belongs to stream %s; this queue needs stream %s",
                              own->jobs, other, own->stream);
    }
    if (number <= 0) {
        return cwist_jq__fail(CWIST_ERROR_PROTOCOL, "the server confirmed without a sequence");
    }
    *sequence = (uint64_t)number;
    return CWIST_SUCCESS;
}

/* What an answer that is no plain confirmation means for its post. */
static void judge_answer(piece *p, cwist_jq__post *post, const cwist_jq__answer *answer)
{
    bool taken = cwist_jq__answer_is_taken(answer) ||
                 cwist_jq__json_true(cwist_jq__json_member(answer->json, "duplicate"));
    bool ask_whose = post->keyed || (p->goal == CWIST_JQ_FOR_REQUEUE && !post->lost);

    if (cwist_jq__answer_is_temporary(answer)) {
        p->delay.code = CWIST_SUCCESS; /* the newest counts */
        cwist_jq__failure_note(&p->delay, post->item, cwist_jq__answer_fail(answer, "not stored"));
    } else if (taken && ask_whose) {
        post->code = CWIST_JQ_TAKEN;
    } else if (p->goal == CWIST_JQ_FOR_JOB) {
        close_post(p, post, cwist_jq__confirmation(&post->sequence, answer, p->queue));
    } else if (answer->error == 0 || taken) {
        close_post(p, post, CWIST_SUCCESS); /* stored now, or by an earlier try */
    } else if (p->goal == CWIST_JQ_FOR_COPY && cwist_jq__answer_is_full(answer)) {
        post->code = CWIST_JQ_NO_ROOM;
    } else if (p->goal == CWIST_JQ_FOR_REQUEUE) {
        close_post(p, post, cwist_jq__not_stored(answer));
    } else {
        close_post(p, post, cwist_jq__answer_fail(answer, "not stored"));
    }
}

/* Takes the reply to a post over. */
static void judge(piece *p, cwist_jq__post *post, natsMsg *reply)
{
    cwist_jq__answer answer;

    post->under_way = false;
    if (p->goal == CWIST_JQ_FOR_JOB &&
        read_quickly(&post->sequence, reply, cwist_jq__nats_queue_of(p->queue)->stream)) {
        post->code = CWIST_SUCCESS;
        natsMsg_Destroy(reply);
        return;
    }
    int status = cwist_jq__answer_read(&answer, reply);
    if (status == CWIST_SUCCESS) {
        judge_answer(p, post, &answer);
    } else {
        close_post(p, post, status);
    }
    cwist_jq__answer_clear(&answer);
}

/* ---- one try ---- */

/* True when the post may still be sent; else it is over. */
static bool is_in_time(piece *p, cwist_jq__post *post)
{
    if (post->lease == NULL || !cwist_jq__passed(atomic_load(post->lease))) {
        return true;
    }
    close_post(p, post,
               post->lost ? cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                           "the message was sent and no reply came")
                          : cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the lease ran out"));
    return false;
}

/* The try of a single post, as of cwist_jq__request_send(). `inside`: when it must be sent. */
static int try_alone(piece *p, const cwist_jq__wait *inside)
{
    cwist_jq__link *link = NULL;
    natsMsg *reply = NULL;
    int status = cwist_jq__link_get(&link, cwist_jq__nats_of(p->queue), inside);

    if (status == CWIST_SUCCESS && cwist_jq__passed(inside->deadline)) {
        status = CWIST_JQ_PENDING;
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__request_send(&reply, link, &p->posts->request, p->wait);
    }
    p->posts->under_way = status == CWIST_JQ_LOST;
    if (status == CWIST_SUCCESS) {
        judge(p, p->posts, reply);
    }
    cwist_jq__link_unref(link);
    return status;
}

/* Adds what is open to the burst. As burst_add(), LOST when a part is under way. */
static int add_open(piece *p, cwist_jq__burst *burst)
{
    int status = CWIST_SUCCESS;

    for (size_t i = 0; i < p->count && status == CWIST_SUCCESS; i++) {
        cwist_jq__post *post = &p->posts[i];
        if (!is_open(post) || !is_in_time(p, post)) {
            continue;
        }
        status = cwist_jq__burst_add(burst, &post->request, i);
        post->under_way = status == CWIST_SUCCESS || status == CWIST_JQ_LOST;
        if (status < 0) { /* this one cannot be sent, others can */
            close_post(p, post, status);
            status = CWIST_SUCCESS;
        }
    }
    return status == CWIST_JQ_UNSENT && burst->open > 0 ? CWIST_JQ_LOST : status;
}

/* Takes the replies of a burst. */
static int take_replies(piece *p, cwist_jq__burst *burst)
{
    int status = CWIST_SUCCESS;
    bool nobody = false;

    while (burst->open > 0 && status == CWIST_SUCCESS) {
        natsMsg *reply = NULL;
        size_t slot = 0;
        status = cwist_jq__burst_next(&reply, &slot, burst, p->wait);
        if (status == CWIST_SUCCESS && slot < p->count && p->posts[slot].under_way) {
            judge(p, &p->posts[slot], reply);
        } else {
            natsMsg_Destroy(reply);
        }
        if (status == CWIST_JQ_NO_RESPONDERS) { /* whose reply this is libnats does not tell */
            nobody = true;
            status = CWIST_SUCCESS;
        }
    }
    return status == CWIST_SUCCESS && nobody ? CWIST_JQ_NO_RESPONDERS : status;
}

static int try_together(piece *p, const cwist_jq__wait *inside)
{
    cwist_jq__burst burst;
    int status = cwist_jq__burst_begin(&burst, cwist_jq__nats_of(p->queue), inside);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    if (cwist_jq__passed(inside->deadline)) {
        status = CWIST_JQ_PENDING;
    } else {
        status = add_open(p, &burst);
        if (status == CWIST_SUCCESS && !cwist_jq__burst_flush(&burst)) {
            status = CWIST_JQ_LOST;
        }
    }
    if (status == CWIST_SUCCESS || status == CWIST_JQ_LOST) {
        /* Of a burst that broke off the first part may have been answered. */
        int taken = take_replies(p, &burst);
        status = status == CWIST_SUCCESS ? taken : status;
    }
    if (status == CWIST_JQ_NO_RESPONDERS) { /* it was for nobody what has no answer now */
        for (size_t i = 0; i < p->count; i++) {
            p->posts[i].under_way = false;
        }
    }
    cwist_jq__burst_end(&burst);
    return status;
}

/* ---- until all is stored or refused ---- */

static bool is_any_scheduled(const piece *p)
{
    bool any = false;

    for (size_t i = 0; i < p->count; i++) {
        any = any || (is_open(&p->posts[i]) && p->posts[i].scheduled);
    }
    return any;
}

/*
 * What comes after a try that did not store all: makes a missing stream, or waits a little.
 * SUCCESS: try again. A copy makes no stream, because with the stream its original is gone too.
 */
static int prepare_again(const piece *p, int last, cwist_jq__backoff *backoff,
                         const cwist_jq__wait *inside)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(p->queue);
    unsigned before = backoff->tries;
    int status = CWIST_SUCCESS;

    if (last == CWIST_JQ_NO_RESPONDERS) {
        status = p->goal == CWIST_JQ_FOR_DEAD   ? cwist_jq__ensure_dead(p->queue, inside)
                 : p->goal == CWIST_JQ_FOR_COPY ? cwist_jq__find_jobs(p->queue, inside)
                                                : cwist_jq__ensure_jobs(p->queue, inside);
        if (status == CWIST_SUCCESS && is_any_scheduled(p)) {
            atomic_store(&own->takes_schedules, false);
            status = cwist_jq__ensure_schedules(p->queue, inside);
        }
    }
    if (status == CWIST_SUCCESS && (last != CWIST_JQ_NO_RESPONDERS || before > 0)) {
        status = cwist_jq__wait_backoff(inside, backoff);
    }
    backoff->tries += backoff->tries == 0 ? 1 : 0;
    return status;
}

/* The time is over and nothing was stored: says what the last try met. */
static int not_stored(const piece *p, int last)
{
    switch (last) {
    case CWIST_JQ_PENDING: /* the text of link_get stands */
        return CWIST_ERROR_IO;
    case CWIST_SUCCESS:
        return cwist_jq__failure_tell(&p->delay);
    case CWIST_JQ_NO_RESPONDERS:
        return cwist_jq__fail(CWIST_ERROR_IO, "not stored: the stream has no leader");
    default:
        return cwist_jq__fail(CWIST_ERROR_IO, "not stored: the connection broke");
    }
}

/*
 * The posts that got no answer: lost for good, or to be sent again where that is harmless. True
 * when one is lost for good.
 */
static bool note_lost(piece *p)
{
    bool any = false;

    for (size_t i = 0; i < p->count; i++) {
        cwist_jq__post *post = &p->posts[i];
        if (is_open(post) && post->under_way) {
            post->under_way = false;
            post->lost = true;
            if (p->goal == CWIST_JQ_FOR_JOB && !post->keyed) {
                any = true;
                close_post(p, post,
                           cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                          "the job was sent and no reply came; it may be stored"));
            }
        }
    }
    return any;
}

static size_t count_open(const piece *p)
{
    size_t open = 0;

    for (size_t i = 0; i < p->count; i++) {
        open += is_open(&p->posts[i]) ? 1 : 0;
    }
    return open;
}

/* Until when a try makes sense: the deadline, or the last lease. */
static uint64_t sending_ends(const piece *p)
{
    uint64_t last = 0;

    for (size_t i = 0; i < p->count; i++) {
        const cwist_jq__post *post = &p->posts[i];
        if (is_open(post)) {
            uint64_t lease = post->lease != NULL ? atomic_load(post->lease) : CWIST_JQ_NEVER;
            last = lease > last ? lease : last;
        }
    }
    return cwist_jq__earlier(p->wait->deadline, last);
}

/* The tries are over: the result of everything that is still open. */
static void close_open(piece *p, int last, int status)
{
    bool late = status == CWIST_JQ_PENDING ||
                (status == CWIST_ERROR_IO && cwist_jq__passed(sending_ends(p)));

    for (size_t i = 0; i < p->count; i++) {
        cwist_jq__post *post = &p->posts[i];
        if (!is_open(post)) {
            continue;
        }
        if (!late && (!post->lost || status != CWIST_ERROR_NOT_SENT)) {
            close_post(p, post, status);
        } else if (post->lost) {
            close_post(p, post,
                       cwist_jq__fail(CWIST_ERROR_OUTCOME_UNKNOWN,
                                      "the message was sent and no reply came"));
        } else if (is_in_time(p, post)) {
            close_post(p, post, not_stored(p, last));
        }
    }
}

void cwist_jq__store(cwist_jq__queue *queue, cwist_jq__post *posts, size_t count,
                     cwist_jq__purpose goal, const cwist_jq__wait *wait, cwist_jq__failure *failure)
{
    piece p = {queue, posts, count, goal, wait, failure, {0}};
    cwist_jq__backoff backoff = {0};

    for (;;) {
        cwist_jq__wait inside = {sending_ends(&p), wait->claim};
        int last = CWIST_JQ_PENDING;
        if (cwist_jq__passed(inside.deadline)) {
            (void)cwist_jq__fail(CWIST_ERROR_IO, "the time was over before it could be sent");
        } else {
            last = count == 1 ? try_alone(&p, &inside) : try_together(&p, &inside);
        }
        bool unknown = note_lost(&p);
        if (count_open(&p) == 0) {
            return;
        }
        int status = last < 0 ? last : CWIST_SUCCESS;
        if (unknown) {
            status = CWIST_ERROR_NOT_SENT; /* jobs keep their order: none goes before a lost one */
        } else if (last == CWIST_JQ_PENDING) {
            status = last;
        } else if (status == CWIST_SUCCESS) {
            status = prepare_again(&p, last, &backoff, &inside);
        }
        if (status != CWIST_SUCCESS) {
            close_open(&p, last, status);
            return;
        }
    }
}
