/*
 * Dead letters that go back into the queue, and those that go for good. A letter is published as a
 * job under its sequence and id, where the stream takes one message only, and then deleted; whoever
 * claims such a job deletes the letter too, should it still be there.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

/* A piece of the letters on their way: one burst of each kind. */
typedef struct piece {
    cwist_jq__queue *queue;
    const cwist_jq__wait *wait;
    const cwist_jq__letter *const *letters;
    size_t count;
    int *codes;
    cwist_jq__failure *failure;
    size_t first; /* the place of letters[0] among all */
    cwist_jq__ask *asks;
    cwist_jq__post *posts;
    natsMsg **messages; /* the headers of the letters */
    char **payloads;
} piece;

static void close_letter(piece *p, size_t i, int code)
{
    p->codes[i] = code;
    if (code != CWIST_SUCCESS) {
        cwist_jq__failure_note(p->failure, p->first + i, code);
    }
}

static int not_found(const cwist_jq__letter *letter)
{
    return cwist_jq__fail(CWIST_ERROR_NOT_FOUND, "no dead letter has the id %s", letter->told.id);
}

/* Asks one thing about each letter that `wanted` says, or about all. */
static int ask(piece *p, const char *api, const char *more, const bool *wanted)
{
    char subject[CWIST_JQ_SUBJECT_SIZE];
    int status = CWIST_SUCCESS;

    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.%s.%s_DEAD", api,
                   cwist_jq__nats_queue_of(p->queue)->stream);
    memset(p->asks, 0, p->count * sizeof *p->asks);
    for (size_t i = 0; i < p->count && status == CWIST_SUCCESS; i++) {
        p->asks[i].done = wanted != NULL && !wanted[i];
        if (!p->asks[i].done) {
            p->asks[i].subject = subject;
            p->asks[i].body = cwist_jq__format("{\"seq\":%s%s}", p->letters[i]->place, more);
            status = p->asks[i].body != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
        }
    }
    return status == CWIST_SUCCESS
               ? cwist_jq__ask_all(cwist_jq__nats_of(p->queue), p->asks, p->count, p->wait)
               : status;
}

/* ---- back into the queue ---- */

static bool is_the_letter(natsMsg *message, cwist_jq__json stored, const cwist_jq__letter *letter)
{
    const char *id = cwist_jq__header_of(message, "Cwist-Id");
    char subject[CWIST_JQ_SUBJECT_SIZE];
    char part[CWIST_JQ_DIGITS + 16];

    if (id != NULL) {
        return strcmp(id, letter->told.id) == 0;
    }
    cwist_jq__json_copy(cwist_jq__json_member(stored, "subject"), subject, sizeof subject);
    (void)snprintf(part, sizeof part, ".dead.%.20s.", letter->told.id);
    return strstr(subject, part) != NULL;
}

/* The job that the letter was, with no delivery spent. */
static void fill(piece *p, size_t i, cwist_jq__json data)
{
    const cwist_jq__letter *letter = p->letters[i];
    cwist_jq__post *post = &p->posts[i];
    unsigned long long first = letter->told.first_ms;
    size_t len = 0;
    bool failed = data.len > 2 && p->payloads[i] == NULL;

    if (p->payloads[i] != NULL) {
        cwist_jq__json_copy(data, p->payloads[i], data.len + 1);
        len = cwist_jq__decode_base64(p->payloads[i]);
    }
    cwist_jq__headers_keep(&post->headers, p->messages[i], false);
    cwist_jq__headers_drop(&post->headers, "Cwist-Dead");
    cwist_jq__headers_add(&post->headers, "Nats-Expected-Last-Subject-Sequence", "0");
    cwist_jq__headers_add(&post->headers, "Cwist-Id", letter->told.id);
    cwist_jq__headers_own(&post->headers, "Cwist-First", cwist_jq__format("%llu", first));
    cwist_jq__headers_add(&post->headers, "Cwist-Dead", letter->place);
    post->subject = cwist_jq__format("%s.re.%s.%s", cwist_jq__nats_queue_of(p->queue)->jobs,
                                     letter->place, letter->told.id);
    if (post->subject != NULL) { /* its subject is free again once the job is done; this is not */
        cwist_jq__headers_add(&post->headers, "Nats-Msg-Id", post->subject);
    }
    post->request = (cwist_jq__request){post->subject, p->payloads[i] != NULL ? p->payloads[i] : "",
                                        len, post->headers.list, post->headers.count};
    if (failed || post->headers.failed || post->subject == NULL) {
        post->code = cwist_jq__no_memory();
        close_letter(p, i, post->code);
    }
}

/* Makes the posts out of what the stream holds. */
static void fill_all(piece *p, int status)
{
    for (size_t i = 0; i < p->count; i++) {
        const cwist_jq__answer *answer = &p->asks[i].answer;
        cwist_jq__json stored = cwist_jq__json_member(answer->json, "message");

        cwist_jq__post_init(&p->posts[i], p->first + i);
        p->posts[i].code = CWIST_ERROR_NOT_SENT;
        if (answer->message == NULL) {
            close_letter(p, i, status != CWIST_SUCCESS ? status : CWIST_ERROR_NOT_SENT);
            continue;
        }
        if (answer->error != 0) {
            close_letter(p, i,
                         cwist_jq__answer_is_gone(answer)
                             ? not_found(p->letters[i])
                             : cwist_jq__answer_fail(answer, "cannot read the dead letter"));
            continue;
        }
        p->messages[i] = cwist_jq__stored_headers(stored);
        if (p->messages[i] == NULL || !is_the_letter(p->messages[i], stored, p->letters[i])) {
            close_letter(p, i, not_found(p->letters[i]));
            continue;
        }
        cwist_jq__json data = cwist_jq__json_member(stored, "data");
        p->payloads[i] = data.len > 2 ? cwist_jq__alloc(data.len + 1) : NULL;
        p->posts[i].code = CWIST_JQ_PENDING;
        fill(p, i, data);
    }
}

/* A letter that was published by somebody else before us is deleted too, but it is not our move. */
static void take_results(piece *p, bool *deletes)
{
    for (size_t i = 0; i < p->count; i++) {
        int code = p->posts[i].code;
        deletes[i] = code == CWIST_SUCCESS || code == CWIST_JQ_TAKEN;
        if (code == CWIST_JQ_TAKEN) {
            close_letter(p, i, not_found(p->letters[i]));
        } else if (p->codes[i] == CWIST_ERROR_NOT_SENT) {
            p->codes[i] = code;
        }
    }
}

static void requeue_piece(piece *p)
{
    bool deletes[CWIST_JQ_BURST_MAX];

    fill_all(p, ask(p, "MSG.GET", "", NULL));
    cwist_jq__ask_clear(p->asks, p->count);
    cwist_jq__store(p->queue, p->posts, p->count, CWIST_JQ_FOR_REQUEUE, p->wait, p->failure);
    take_results(p, deletes);
    /* Should this fail, the claims of these jobs do it. */
    (void)ask(p, "MSG.DELETE", ",\"no_erase\":true", deletes);
    cwist_jq__ask_clear(p->asks, p->count);
    for (size_t i = 0; i < p->count; i++) {
        cwist_jq__post_clear(&p->posts[i]);
        natsMsg_Destroy(p->messages[i]);
        cwist_jq__free(p->payloads[i]);
        p->messages[i] = NULL;
        p->payloads[i] = NULL;
    }
}

/* ---- away ---- */

static void remove_piece(piece *p)
{
    int status = ask(p, "MSG.DELETE", ",\"no_erase\":true", NULL);

    for (size_t i = 0; i < p->count; i++) {
        const cwist_jq__answer *answer = &p->asks[i].answer;
        if (answer->message == NULL) {
            close_letter(p, i, status != CWIST_SUCCESS ? status : CWIST_ERROR_NOT_SENT);
        } else if (answer->error == 0 || (p->asks[i].lost && cwist_jq__answer_is_gone(answer))) {
            p->codes[i] = CWIST_SUCCESS;
        } else if (cwist_jq__answer_is_gone(answer)) {
            close_letter(p, i, not_found(p->letters[i]));
        } else {
            close_letter(p, i, cwist_jq__answer_fail(answer, "cannot delete the dead letter"));
        }
    }
    cwist_jq__ask_clear(p->asks, p->count);
}

/* ---- pieces ---- */

/* How many of the letters go together. */
static size_t piece_of(const cwist_jq__letter *const *letters, size_t count)
{
    size_t most = count < CWIST_JQ_BURST_MAX ? count : CWIST_JQ_BURST_MAX;
    size_t bytes = letters[0]->told.len;
    size_t taken = 1;

    while (taken < most && bytes < CWIST_JQ_BURST_BYTES &&
           letters[taken]->told.len <= CWIST_JQ_BURST_BYTES - bytes) {
        bytes += letters[taken++]->told.len;
    }
    return taken;
}

static void free_piece(piece *p)
{
    cwist_jq__free(p->asks);
    cwist_jq__free(p->posts);
    cwist_jq__free(p->messages);
    cwist_jq__free(p->payloads);
}

static int move_all(cwist_jq__queue *queue, const cwist_jq__letter *const *letters, size_t count,
                    bool back, uint64_t deadline, int *codes)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__failure failure = {0};
    size_t room = count < CWIST_JQ_BURST_MAX ? count : CWIST_JQ_BURST_MAX;
    piece p = {.queue = queue, .wait = &wait, .failure = &failure};

    for (size_t i = 0; i < count; i++) {
        codes[i] = CWIST_ERROR_NOT_SENT;
    }
    p.asks = cwist_jq__calloc(room, sizeof *p.asks);
    p.posts = cwist_jq__calloc(room, sizeof *p.posts);
    p.messages = cwist_jq__calloc(room, sizeof(natsMsg *));
    p.payloads = cwist_jq__calloc(room, sizeof(char *));
    if (p.asks == NULL || p.posts == NULL || p.messages == NULL || p.payloads == NULL) {
        free_piece(&p);
        codes[0] = cwist_jq__no_memory();
        return codes[0];
    }
    for (size_t done = 0; done < count; done += p.count) {
        p.first = done;
        p.letters = letters + done;
        p.codes = codes + done;
        p.count = back ? piece_of(p.letters, count - done) : count - done;
        p.count = p.count < room ? p.count : room;
        if (back) {
            requeue_piece(&p);
        } else {
            remove_piece(&p);
        }
    }
    free_piece(&p);
    return cwist_jq__failure_tell(&failure);
}

int cwist_jq__nats_dead_requeue(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                size_t count, uint64_t deadline, int *codes)
{
    return move_all(queue, letters, count, true, deadline, codes);
}

int cwist_jq__nats_dead_remove(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                               size_t count, uint64_t deadline, int *codes)
{
    return move_all(queue, letters, count, false, deadline, codes);
}
