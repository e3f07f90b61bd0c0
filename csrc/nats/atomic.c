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
    size_t *sent; /* the places of the items that are to be stored */
    size_t count; /* of them */
    const cwist_jq__wait *wait;
    cwist_job_stored_t *stored; /* of all items */
    char id[24];
    bool committed; /* the commit is on its way */
    uint64_t last;  /* the sequence of the last job */
} batch;

/* ---- one try ---- */

static int add_post(batch *b, cwist_jq__burst *burst, cwist_jq__post *post, size_t i)
{
    bool last = i == b->count - 1;
    char number[CWIST_JQ_DIGITS + 1];

    (void)cwist_jq__put_number(number, i + 1);
    cwist_jq__headers_add(&post->headers, "Nats-Batch-Id", b->id);
    cwist_jq__headers_add(&post->headers, "Nats-Batch-Sequence", number);
    if (last) {
        cwist_jq__headers_add(&post->headers, "Nats-Batch-Commit", "1");
    }
    if (post->headers.failed) {
        return cwist_jq__no_memory();
    }
    post->request.headers = post->headers.list;
    post->request.header_count = post->headers.count;
    int status = cwist_jq__burst_add(burst, &post->request, i == 0 || last ? i : CWIST_JQ_NO_REPLY);
    b->committed = last && (status == CWIST_SUCCESS || status == CWIST_JQ_LOST);
    return status;
}

static int add_item(batch *b, cwist_jq__burst *burst, size_t i)
{
    size_t place = b->sent[i];
    cwist_jq__post post;

    cwist_jq__post_init(&post, place);
    int status = cwist_jq__item_fill(&post, b->queue, &b->items[place]);
    if (status == CWIST_SUCCESS && post.id != NULL) {
        memcpy(b->stored[place].id, post.id, strlen(post.id) + 1);
    }
    if (status == CWIST_SUCCESS) {
        status = add_post(b, burst, &post, i);
    }
    cwist_jq__post_clear(&post);
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

/* ---- duplicates ---- */

/* Takes the items that are marked as duplicates off the list of those that are to be stored. */
static void drop_marked(batch *b)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->count; i++) {
        if (!b->stored[b->sent[i]].duplicate) {
            b->sent[kept++] = b->sent[i];
        }
    }
    b->count = kept;
}

static int ask_piece(batch *b, cwist_jq__ask *asks, const char *get, const size_t *places,
                     size_t count)
{
    int status = CWIST_SUCCESS;

    memset(asks, 0, count * sizeof *asks);
    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        const char *key = b->items[places[i]].dedupe_key;
        char *subject = key != NULL ? cwist_jq__key_subject(b->queue, key) : NULL;
        asks[i].done = key == NULL;
        if (key != NULL) {
            status = subject != NULL ? cwist_jq__holder_ask(&asks[i], get, subject)
                                     : cwist_jq__no_memory();
        }
        cwist_jq__free(subject);
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__ask_all(cwist_jq__nats_of(b->queue), asks, count, b->wait);
    }
    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        cwist_job_stored_t *stored = &b->stored[places[i]];
        stored->duplicate =
            asks[i].answer.message != NULL && cwist_jq__holder_read(stored->id, &asks[i]);
    }
    cwist_jq__ask_clear(asks, count);
    return status;
}

/* A key of the batch is held: looks which, and leaves these items out. */
static int leave_out_duplicates(batch *b)
{
    char get[CWIST_JQ_SUBJECT_SIZE];
    size_t most = b->count < CWIST_JQ_BURST_MAX ? b->count : CWIST_JQ_BURST_MAX;
    cwist_jq__ask *asks = cwist_jq__calloc(most, sizeof *asks);
    int status = asks != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();

    (void)snprintf(get, sizeof get, "$JS.API.STREAM.MSG.GET.%s",
                   cwist_jq__nats_queue_of(b->queue)->stream);
    for (size_t done = 0; done < b->count && status == CWIST_SUCCESS; done += most) {
        size_t left = b->count - done;
        status = ask_piece(b, asks, get, b->sent + done, left < most ? left : most);
    }
    cwist_jq__free(asks);
    if (status == CWIST_SUCCESS) {
        drop_marked(b);
    }
    return status;
}

/* The item before `place` with the same key; `place` when there is none. */
static size_t same_key(const cwist_job_item_t *items, size_t place)
{
    size_t i = 0;

    while (i < place && (items[place].dedupe_key == NULL || items[i].dedupe_key == NULL ||
                         strcmp(items[i].dedupe_key, items[place].dedupe_key) != 0)) {
        i++;
    }
    return i;
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
        if (cwist_jq__answer_is_taken(answer)) {
            return leave_out_duplicates(b);
        }
        return answer->error == ERR_ATOMIC_INCOMPLETE || cwist_jq__answer_is_temporary(answer)
                   ? CWIST_SUCCESS
                   : cwist_jq__not_stored(answer);
    case CWIST_JQ_NO_RESPONDERS:
        atomic_store(&own->takes_atomic, false);
        atomic_store(&own->takes_schedules, false);
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

static int ensure(batch *b)
{
    int status = cwist_jq__ensure_atomic(b->queue, b->wait);

    for (size_t i = 0; i < b->count && status == CWIST_SUCCESS; i++) {
        if (b->items[b->sent[i]].delay_ms != 0) {
            status = cwist_jq__ensure_schedules(b->queue, b->wait);
        }
    }
    return status;
}

static int store(batch *b)
{
    cwist_jq__backoff backoff = {0};
    cwist_jq__answer answer;
    int status = CWIST_SUCCESS;

    memset(&answer, 0, sizeof answer);
    while (b->count > 0) {
        status = ensure(b);
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

/* Tells what became of the items. */
static void tell(const batch *b, size_t count, int status)
{
    for (size_t i = 0; i < count; i++) {
        b->stored[i].code = status;
        if (status != CWIST_SUCCESS) {
            b->stored[i].duplicate = false;
            b->stored[i].id[0] = '\0';
        }
    }
    if (status != CWIST_SUCCESS) {
        return;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (b->items[b->sent[i]].delay_ms == 0) { /* else it has its id already */
            (void)cwist_jq__put_number(b->stored[b->sent[i]].id, b->last - b->count + 1 + i);
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t first = same_key(b->items, i);
        if (first != i) {
            memcpy(b->stored[i].id, b->stored[first].id, sizeof b->stored[i].id);
        }
    }
}

int cwist_jq__nats_enqueue_all(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                               const cwist_jq__wait *wait, cwist_job_stored_t *stored)
{
    size_t *sent = cwist_jq__alloc(count * sizeof *sent);
    batch b = {.queue = queue, .items = items, .sent = sent, .wait = wait, .stored = stored};

    if (sent == NULL) {
        stored[0].code = cwist_jq__no_memory();
        return stored[0].code;
    }
    for (size_t i = 0; i < count; i++) {
        stored[i].duplicate = same_key(items, i) != i;
        if (!stored[i].duplicate) {
            sent[b.count++] = i;
        }
    }
    int status = store(&b);
    tell(&b, count, status);
    cwist_jq__free(sent);
    return status;
}
