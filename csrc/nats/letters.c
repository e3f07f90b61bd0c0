/*
 * Lists of dead letters. A short-lived consumer of the server reads them, without their payloads,
 * from a sequence on. It tells at once how many there are from there to the end, so the newest are
 * found by looking for the sequence behind which there are as many as are wanted.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

/* A consumer of the dead letters. */
typedef struct reader {
    cwist_jq__queue *queue;
    const cwist_jq__wait *wait;
    char name[64];
    uint64_t count; /* letters from its start to the end of the stream */
    bool missing;   /* there is no stream */
} reader;

/* ---- the consumer ---- */

static int open_reader(reader *r, uint64_t from)
{
    const char *stream = cwist_jq__nats_queue_of(r->queue)->stream;
    cwist_jq__answer answer;
    char subject[CWIST_JQ_SUBJECT_SIZE];
    char *body = cwist_jq__format(
        "{\"stream_name\":\"%s_DEAD\",\"config\":{\"deliver_policy\":\"by_start_sequence\","
        "\"opt_start_seq\":%llu,\"ack_policy\":\"none\",\"headers_only\":true,\"mem_storage\":true,"
        "\"num_replicas\":1,\"inactive_threshold\":5000000000,\"replay_policy\":\"instant\"}}",
        stream, (unsigned long long)(from > 0 ? from : 1));

    memset(&answer, 0, sizeof answer);
    r->name[0] = '\0';
    r->count = 0;
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.%s_DEAD", stream);
    int status = body != NULL
                     ? cwist_jq__api(&answer, cwist_jq__nats_of(r->queue), subject, body, r->wait)
                     : cwist_jq__no_memory();
    r->missing = status == CWIST_SUCCESS && answer.error == CWIST_JQ_ERR_STREAM_NOT_FOUND;
    if (status == CWIST_SUCCESS && answer.error != 0 && !r->missing) {
        status = cwist_jq__answer_fail(&answer, "cannot read the dead letters");
    } else if (status == CWIST_SUCCESS && !r->missing) {
        cwist_jq__json_copy(cwist_jq__json_member(answer.json, "name"), r->name, sizeof r->name);
        r->count = cwist_jq__json_count(answer.json, "num_pending");
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(body);
    return status;
}

/* The server deletes it by itself, a little later, when this fails. */
static void close_reader(reader *r)
{
    cwist_jq__answer answer;
    char subject[CWIST_JQ_SUBJECT_SIZE];

    if (r->name[0] != '\0') {
        (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.%s_DEAD.%s",
                       cwist_jq__nats_queue_of(r->queue)->stream, r->name);
        (void)cwist_jq__api(&answer, cwist_jq__nats_of(r->queue), subject, NULL, r->wait);
        cwist_jq__answer_clear(&answer);
        r->name[0] = '\0';
    }
}

/* ---- the messages ---- */

#define PULL_MOST 1000
/*
 * How long a pull waits for letters that were there when the reader was made: some may be gone
 * meanwhile. One that does not wait at all may be answered before the server has looked (2.15.1).
 */
#define PULL_MS 500

/* Messages in their order. Of more than there is room for the last are kept. */
typedef struct shelf {
    natsMsg **messages;
    size_t room;
    size_t count;
    size_t first; /* the place of the oldest, once there is no room left */
} shelf;

static void put(shelf *s, natsMsg *message)
{
    if (s->count < s->room) {
        s->messages[s->count++] = message;
        return;
    }
    natsMsg_Destroy(s->messages[s->first]);
    s->messages[s->first] = message;
    s->first = (s->first + 1) % s->room;
}

static void clear_shelf(shelf *s)
{
    for (size_t i = 0; i < s->count; i++) {
        natsMsg_Destroy(s->messages[i]);
    }
    s->count = 0;
    s->first = 0;
}

/* A look at letters: those from a sequence on, and below another, up to a number. */
typedef struct range {
    uint64_t below;
    uint64_t most;
    uint64_t behind; /* told: how many letters follow the last */
} range;

/* The next letter of a pull; NULL with SUCCESS: the pull is over. */
static int next_letter(natsMsg **message, const reader *r, cwist_jq__link *link,
                       cwist_jq__inbox *inbox)
{
    natsStatus got = NATS_TIMEOUT;
    int status = CWIST_SUCCESS;

    while (status == CWIST_SUCCESS && got == NATS_TIMEOUT) {
        int64_t ms = cwist_jq__wait_slice(r->wait, CWIST_JQ_SLICE_MS);
        got = natsSubscription_NextMsg(message, inbox->subscription, ms);
        status = got == NATS_TIMEOUT ? cwist_jq__wait_check(r->wait) : CWIST_SUCCESS;
    }
    if (got == NATS_NO_RESPONDERS) { /* the consumer is gone */
        *message = NULL;
        return CWIST_JQ_LOST;
    }
    if (got != NATS_OK) {
        *message = NULL;
        if (got != NATS_TIMEOUT) {
            cwist_jq__link_break(link);
        }
        return CWIST_JQ_LOST;
    }
    if (!cwist_jq__is_delivery(*message)) {
        natsMsg_Destroy(*message);
        *message = NULL;
    }
    return CWIST_SUCCESS;
}

/* Takes what one pull for `asked` letters brings. *over: there are no others in the range. */
static int take_pull(const reader *r, cwist_jq__link *link, cwist_jq__inbox *inbox, size_t asked,
                     range *wanted, shelf *s, bool *over)
{
    int status = CWIST_SUCCESS;

    while (asked > 0 && !*over && status == CWIST_SUCCESS) {
        natsMsg *message = NULL;
        cwist_jq__ticket ticket;
        status = next_letter(&message, r, link, inbox);
        if (message == NULL) {
            *over = status == CWIST_SUCCESS;
            break;
        }
        if (!cwist_jq__ticket_read(&ticket, natsMsg_GetReply(message)) ||
            ticket.sequence >= wanted->below) {
            natsMsg_Destroy(message);
            *over = true;
            break;
        }
        wanted->behind = cwist_jq__pending_after(natsMsg_GetReply(message));
        put(s, message);
        *over = wanted->behind == 0;
        asked--;
    }
    return status;
}

static int send_pull(const reader *r, cwist_jq__link *link, const cwist_jq__inbox *inbox,
                     size_t count)
{
    char subject[CWIST_JQ_SUBJECT_SIZE];
    char body[64];

    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.MSG.NEXT.%s_DEAD.%s",
                   cwist_jq__nats_queue_of(r->queue)->stream, r->name);
    (void)snprintf(body, sizeof body, "{\"batch\":%zu,\"expires\":%llu}", count,
                   (unsigned long long)(PULL_MS * CWIST_JQ_MS));
    cwist_jq__request request = {subject, body, strlen(body), NULL, 0};
    return cwist_jq__publish(link, &request, inbox->reply);
}

/* Takes the range out of an open reader. Results as of a request. */
static int take_range(const reader *r, range *wanted, shelf *s)
{
    cwist_jq__link *link = NULL;
    cwist_jq__inbox *inbox = NULL;
    bool over = false;
    int status = cwist_jq__link_get(&link, cwist_jq__nats_of(r->queue), r->wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    inbox = cwist_jq__inbox_take(link);
    if (inbox == NULL) {
        status = cwist_jq__link_usable(link) ? cwist_jq__no_memory() : CWIST_JQ_UNSENT;
    }
    for (uint64_t left = wanted->most; left > 0 && !over && status == CWIST_SUCCESS;) {
        size_t asked = left < PULL_MOST ? (size_t)left : PULL_MOST;
        status = send_pull(r, link, inbox, asked);
        if (status == CWIST_SUCCESS) {
            status = take_pull(r, link, inbox, asked, wanted, s, &over);
        }
        left -= asked;
    }
    if (inbox != NULL) { /* something may be on its way to it */
        cwist_jq__inbox_give(link, inbox, false);
    }
    cwist_jq__link_unref(link);
    return status;
}

/* ---- where the newest begin ---- */

/* What the stream tells of itself. */
typedef struct bounds {
    uint64_t first;
    uint64_t end; /* the sequence behind the last */
    uint64_t count;
} bounds;

static int read_bounds(bounds *b, cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    int status = cwist_jq__stream_info(&answer, queue, "_DEAD", NULL, wait);

    memset(b, 0, sizeof *b);
    if (status == CWIST_SUCCESS && answer.error == 0) {
        cwist_jq__json state = cwist_jq__json_member(answer.json, "state");
        b->count = cwist_jq__json_count(state, "messages");
        b->first = cwist_jq__json_count(state, "first_seq");
        b->end = cwist_jq__json_count(state, "last_seq") + 1;
    } else if (status == CWIST_SUCCESS && answer.error != CWIST_JQ_ERR_STREAM_NOT_FOUND) {
        status = cwist_jq__answer_fail(&answer, "stream info");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

/* How many letters there are from a sequence on. */
static int count_from(uint64_t *count, reader *r, uint64_t from)
{
    int status = open_reader(r, from);

    *count = r->count;
    close_reader(r);
    return status;
}

/*
 * Finds where to begin so that there are at least `most` letters from there to `end`, but not many
 * more, unless there are so few. Most often there are no gaps, and the first guess is right.
 */
static int find_start(uint64_t *from, reader *r, const bounds *b, uint64_t end, uint64_t behind,
                      uint64_t most)
{
    uint64_t enough = b->first; /* from there on there are as many as can be */
    uint64_t few = end;         /* from there on there are too few */
    uint64_t width = most;
    int status = CWIST_SUCCESS;

    *from = enough;
    while (few > enough + 1) {
        uint64_t count = 0;
        uint64_t guess = width < few - enough ? few - width : enough + (few - enough) / 2;
        status = count_from(&count, r, guess);
        if (status != CWIST_SUCCESS || r->missing) {
            break;
        }
        count = count > behind ? count - behind : 0;
        if (count < most) {
            few = guess;
            width *= 4;
            continue;
        }
        *from = enough = guess;
        if (count <= 4 * most) {
            break;
        }
        width = (few - enough) / 2;
        width = width > 0 ? width : 1;
    }
    return status;
}

/* ---- a page ---- */

static int collect_oldest(reader *r, uint64_t after, shelf *s, bool *more)
{
    range wanted = {UINT64_MAX, 0, 0};
    int status = open_reader(r, after + 1);

    if (status == CWIST_SUCCESS && r->count > 0) {
        wanted.most = r->count < s->room ? r->count : s->room;
        status = take_range(r, &wanted, s);
    }
    close_reader(r);
    *more = s->count > 0 && wanted.behind > 0;
    return status;
}

static int collect_newest(reader *r, uint64_t after, shelf *s, bool *more)
{
    bounds b;
    uint64_t behind = 0;
    uint64_t from = 0;
    int status = read_bounds(&b, r->queue, r->wait);
    uint64_t end = after != 0 && after < b.end ? after : b.end;

    if (status != CWIST_SUCCESS || b.count == 0 || end <= b.first) {
        return status;
    }
    if (end < b.end) {
        status = count_from(&behind, r, end);
    }
    if (status == CWIST_SUCCESS) {
        status = find_start(&from, r, &b, end, behind, s->room);
    }
    if (status == CWIST_SUCCESS) {
        status = open_reader(r, from);
    }
    if (status == CWIST_SUCCESS && r->count > behind) {
        range wanted = {end, r->count - behind, 0};
        status = take_range(r, &wanted, s);
    }
    close_reader(r);
    *more = s->count > 0 && b.count > behind + s->count;
    return status;
}

/* The size that the server tells in place of a payload. */
static size_t size_of(natsMsg *message)
{
    uint64_t size = 0;

    return cwist_jq__decimal(&size, cwist_jq__header_of(message, "Nats-Msg-Size")) ? (size_t)size
                                                                                   : 0;
}

static int add_message(cwist_job_dead_page_t *page, const reader *r, natsMsg **message)
{
    cwist_jq__ticket ticket;
    cwist_jq__fields fields;
    cwist_jq__found found = {0, 0, 0, NULL};
    int status = CWIST_SUCCESS;

    if (!cwist_jq__ticket_read(&ticket, natsMsg_GetReply(*message))) {
        return cwist_jq__fail(CWIST_ERROR_PROTOCOL, "the subject of a letter cannot be read");
    }
    cwist_jq__fields_read(&fields, *message);
    found.sequence = ticket.sequence;
    found.died_ms = ticket.stored / CWIST_JQ_MS;
    found.len = size_of(*message);
    if (fields.suspect) {
        char stream[CWIST_JQ_SUBJECT_SIZE];
        (void)snprintf(stream, sizeof stream, "%s_DEAD", cwist_jq__nats_queue_of(r->queue)->stream);
        status = cwist_jq__repair_headers(r->queue, stream, ticket.sequence, message, r->wait);
        if (status == CWIST_SUCCESS) {
            cwist_jq__fields_clear(&fields);
            cwist_jq__fields_read(&fields, *message);
        }
        status = status == CWIST_ERROR_REFUSED ? CWIST_SUCCESS : status; /* it is gone */
    }
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__letter_add(page, r->queue, *message, &fields, &found);
    }
    cwist_jq__fields_clear(&fields);
    return status;
}

static int add_shelf(cwist_job_dead_page_t *page, const reader *r, shelf *s, bool oldest_first)
{
    int status = CWIST_SUCCESS;

    for (size_t i = 0; i < s->count && status == CWIST_SUCCESS; i++) {
        size_t place = oldest_first ? i : s->count - 1 - i;
        status = add_message(page, r, &s->messages[(s->first + place) % s->room]);
    }
    return status;
}

/* Collects until it has worked once: nothing is changed by it. */
static int collect(reader *r, uint64_t after, bool oldest_first, shelf *s, bool *more)
{
    cwist_jq__backoff backoff = {0};

    for (;;) {
        int status =
            oldest_first ? collect_oldest(r, after, s, more) : collect_newest(r, after, s, more);
        if (status <= CWIST_SUCCESS) {
            return status;
        }
        clear_shelf(s);
        if (cwist_jq__wait_backoff(r->wait, &backoff) != CWIST_SUCCESS) {
            return cwist_jq__fail(CWIST_ERROR_IO, "the server did not answer in time");
        }
    }
}

int cwist_jq__nats_dead_list(cwist_jq__queue *queue, const char *after, size_t most,
                             bool oldest_first, uint64_t deadline, cwist_job_dead_page_t *page,
                             bool *more)
{
    cwist_jq__wait wait = {deadline, NULL};
    reader r = {.queue = queue, .wait = &wait};
    shelf s = {.room = most};
    uint64_t mark = 0;

    *more = false;
    if (after != NULL && (!cwist_jq__decimal(&mark, after) || mark == 0 || mark > INT64_MAX)) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "after is no mark of this queue");
    }
    s.messages = cwist_jq__calloc(most, sizeof(natsMsg *));
    if (s.messages == NULL) {
        return cwist_jq__no_memory();
    }
    int status = collect(&r, mark, oldest_first, &s, more);
    if (status == CWIST_SUCCESS) {
        status = add_shelf(page, &r, &s, oldest_first);
    }
    clear_shelf(&s);
    cwist_jq__free(s.messages);
    return status;
}
