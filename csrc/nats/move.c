/*
 * Moves that the server has no word for: a release writes a copy that carries the old count, a
 * death writes a dead letter; both then acknowledge the original. A cut in between leaves both, and
 * the next claim of either one mends it.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

#define ONCE "Nats-Expected-Last-Subject-Sequence"

static void add_number(cwist_jq__headers *headers, const char *name, uint64_t number)
{
    cwist_jq__headers_own(headers, name, cwist_jq__format("%llu", (unsigned long long)number));
}

/* The headers that a copy and a dead letter share. `last`: what may be on the subject already. */
static void add_common(cwist_jq__headers *headers, const cwist_jq__job *job,
                       const cwist_jq__origin *origin, uint64_t attempts, uint64_t last)
{
    add_number(headers, ONCE, last);
    cwist_jq__headers_add(headers, "Cwist-Id", job->id);
    add_number(headers, "Cwist-First", origin->first);
    add_number(headers, "Cwist-Attempts", attempts);
}

/* Percent-encodes what a header line cannot carry; NULL: no memory. */
static char *encode(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = strlen(text);
    char *out = len < SIZE_MAX / 3 ? cwist_jq__alloc(len * 3 + 1) : NULL;
    size_t used = 0;

    for (size_t i = 0; out != NULL && i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool outer = i == 0 || i == len - 1;
        if (c > 0x7E || c < 0x20 || c == '%' || (c == ' ' && outer)) {
            out[used++] = '%';
            out[used++] = digits[c >> 4];
            out[used++] = digits[c & 15];
        } else {
            out[used++] = (char)c;
        }
    }
    if (out != NULL) {
        out[used] = '\0';
    }
    return out;
}

/*
 * All headers of the dead letter; without those of other publishers when there is no room, and none
 * at all when a publisher used the room that is to be kept free.
 */
static void add_dead_headers(cwist_jq__headers *headers, cwist_jq__queue *queue, cwist_jq__job *job,
                             const cwist_jq__origin *origin, cwist_jq__cause cause,
                             const char *text)
{
    int64_t most = atomic_load(&cwist_jq__nats_of(queue)->max_payload);

    add_common(headers, job, origin, job->attempts, 0);
    cwist_jq__headers_add(headers, "Cwist-Cause", cwist_jq__cause_name(cause));
    if (text != NULL && *text != '\0') {
        cwist_jq__headers_own(headers, "Cwist-Reason", encode(text));
    }
    if (cause == CWIST_JQ_CAUSE_NACKED || cause == CWIST_JQ_CAUSE_REJECTED) {
        cwist_jq__headers_add(headers, "Cwist-Consumer", queue->consumer);
    }
    size_t ours = headers->count;
    size_t room = most > (int64_t)job->payload_len ? (size_t)most - job->payload_len : 0;
    cwist_jq__headers_keep(headers, job->body, cause == CWIST_JQ_CAUSE_MALFORMED);
    if (!headers->failed && cwist_jq__headers_size(headers) > room) {
        headers->count = ours;
        if (cause != CWIST_JQ_CAUSE_MALFORMED) {
            cwist_jq__headers_type(headers, job->type);
        }
    }
    if (!headers->failed && cwist_jq__headers_size(headers) > room) {
        cwist_jq__headers_clear(headers);
    }
}

/* For a dead letter without the header that refuses repeats: is it there already? */
static int is_buried(bool *there, cwist_jq__queue *queue, const char *subject,
                     const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    char *body = cwist_jq__format("{\"last_by_subj\":\"%s\"}", subject);

    memset(&answer, 0, sizeof answer);
    int status = body != NULL ? cwist_jq__get_message(&answer, queue, "_DEAD", body, wait)
                              : cwist_jq__no_memory();
    *there = status == CWIST_SUCCESS && answer.error == 0;
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(body);
    return status;
}

/* A move of jobs: what is written for each, and where. */
typedef struct move {
    cwist_jq__purpose goal;
    cwist_jq__cause cause; /* of a death */
    const char *text;      /* of a death; may be NULL */
    uint64_t delay_ms;     /* of a release; 0: ready at once */
} move;

/*
 * The message of a release: the job once more, with what it has spent before this delivery. It goes
 * to a subject of its own, so that a repeat is refused instead of doubling the job. A job with a
 * key keeps the subject of that.
 */
static int fill_copy(cwist_jq__post *post, cwist_jq__queue *queue, cwist_jq__job *job,
                     uint64_t delay_ms)
{
    const cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    const char *subject = natsMsg_GetSubject(job->body);
    cwist_jq__origin origin;

    cwist_jq__origin_read(&origin, job->body);
    post->keyed = cwist_jq__key_token(queue, subject) != NULL;
    post->scheduled = delay_ms != 0;
    bool replaces = post->keyed && !post->scheduled;
    add_common(&post->headers, job, &origin, job->attempts - 1,
               replaces ? origin.ticket.sequence : 0);
    add_number(&post->headers, "Cwist-From", origin.ticket.sequence);
    if (post->scheduled) {
        const char *target = post->keyed ? subject : own->jobs;
        uint64_t now = cwist_jq__clock_ms(cwist_jq__nats_of(queue)) + 1;
        cwist_jq__schedule(&post->headers, now + delay_ms, target);
        post->subject = cwist_jq__waiting_subject(queue, target, job->id);
    } else {
        post->subject = post->keyed ? cwist_jq__strdup(subject)
                                    : cwist_jq__format("%s.copy.%s", own->jobs, origin.sequence);
    }
    cwist_jq__headers_keep(&post->headers, job->body, false);
    return CWIST_SUCCESS;
}

/*
 * The name of a death: the same however often it is published. A job that was dead before dies
 * under another name, so that its letter is not taken for the one that is still being requeued.
 */
static char *dead_subject(const cwist_jq__queue *queue, const cwist_jq__job *job,
                          const cwist_jq__origin *origin)
{
    const char *stream = cwist_jq__nats_queue_of(queue)->stream;
    unsigned long long first = origin->first;
    unsigned long long before = origin->dead;

    return before != 0 ? cwist_jq__format("%s.dead.%s.%llu-%llu", stream, job->id, first, before)
                       : cwist_jq__format("%s.dead.%s.%llu", stream, job->id, first);
}

/* The dead letter. */
static int fill_letter(cwist_jq__post *post, cwist_jq__queue *queue, cwist_jq__job *job,
                       const move *how, const cwist_jq__wait *wait)
{
    cwist_jq__origin origin;
    bool there = false;
    int status = CWIST_SUCCESS;

    cwist_jq__origin_read(&origin, job->body);
    add_dead_headers(&post->headers, queue, job, &origin, how->cause, how->text);
    post->subject = dead_subject(queue, job, &origin);
    if (post->subject != NULL && !post->headers.failed && post->headers.count == 0) {
        status = is_buried(&there, queue, post->subject, wait);
        post->code = there ? CWIST_SUCCESS : post->code;
    }
    return status;
}

static void fill_post(cwist_jq__post *post, cwist_jq__queue *queue, cwist_jq__job *job,
                      const move *how, const cwist_jq__wait *wait, cwist_jq__failure *failure)
{
    int status = CWIST_SUCCESS;

    if (cwist_jq__passed(atomic_load(&job->lease_ends))) {
        status = cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the lease of this delivery ran out");
    } else if (how->goal == CWIST_JQ_FOR_COPY) {
        status = fill_copy(post, queue, job, how->delay_ms);
    } else {
        status = fill_letter(post, queue, job, how, wait);
    }
    if (status == CWIST_SUCCESS && (post->subject == NULL || post->headers.failed)) {
        status = cwist_jq__no_memory();
    }
    if (status != CWIST_SUCCESS) {
        post->code = status;
        cwist_jq__failure_note(failure, post->item, status);
    }
    post->lease = &job->lease_ends;
    post->request = (cwist_jq__request){post->subject, job->payload, job->payload_len,
                                        post->headers.list, post->headers.count};
}

/*
 * Acknowledges the originals of what is stored. Should that fail for a release, the copy's claim
 * deletes the original. A dead job's original must go, also when the lease has just run out.
 */
static void end_originals(cwist_jq__queue *queue, cwist_jq__job *const *jobs, cwist_jq__post *posts,
                          size_t count, const move *how, const cwist_jq__wait *wait,
                          cwist_jq__failure *failure)
{
    cwist_jq__job *moved[CWIST_JQ_BURST_MAX];
    int codes[CWIST_JQ_BURST_MAX];
    size_t places[CWIST_JQ_BURST_MAX];
    cwist_jq__failure told = {0};
    cwist_jq__ending ending = {.queue = queue,
                               .jobs = moved,
                               .codes = codes,
                               .failure = &told,
                               .word = "+ACK",
                               .word_len = 4,
                               .fenced = how->goal == CWIST_JQ_FOR_COPY,
                               .repeat = true};

    for (size_t i = 0; i < count; i++) {
        if (posts[i].code == CWIST_SUCCESS) {
            places[ending.count] = i;
            moved[ending.count++] = jobs[i];
        }
    }
    cwist_jq__confirm(&ending, wait);
    for (size_t i = 0; i < ending.count && how->goal == CWIST_JQ_FOR_DEAD; i++) {
        /* Without its consumer a later delivery meets the dead letter and is acked then. */
        bool done = codes[i] == CWIST_SUCCESS || codes[i] == CWIST_ERROR_LEASE_LOST;
        posts[places[i]].code = done ? CWIST_SUCCESS : codes[i];
        if (!done) {
            (void)cwist_jq__failure_tell(&told);
            cwist_jq__failure_note(failure, posts[places[i]].item, codes[i]);
        }
    }
}

/* How many of the jobs go into one burst. */
static size_t piece_of(cwist_jq__job *const *jobs, size_t count)
{
    size_t most = count < CWIST_JQ_BURST_MAX ? count : CWIST_JQ_BURST_MAX;
    size_t bytes = jobs[0]->payload_len;
    size_t taken = 1;

    while (taken < most && bytes < CWIST_JQ_BURST_BYTES &&
           jobs[taken]->payload_len <= CWIST_JQ_BURST_BYTES - bytes) {
        bytes += jobs[taken++]->payload_len;
    }
    return taken;
}

/*
 * Something else is on the subject of a key: the copy that an earlier try stored, or what another
 * program put there.
 */
static int is_stored(bool *stored, cwist_jq__queue *queue, const cwist_jq__post *post,
                     const cwist_jq__job *job, const cwist_jq__wait *wait)
{
    cwist_jq__ticket ticket;
    cwist_jq__answer answer;
    char *body = cwist_jq__format("{\"last_by_subj\":\"%s\"}", post->subject);

    *stored = false;
    memset(&answer, 0, sizeof answer);
    int status = body != NULL ? cwist_jq__get_message(&answer, queue, "", body, wait)
                              : cwist_jq__no_memory();
    if (status == CWIST_SUCCESS && answer.error == 0 &&
        cwist_jq__ticket_read(&ticket, job->receipt)) {
        cwist_jq__json message = cwist_jq__json_member(answer.json, "message");
        *stored = cwist_jq__is_copy_of(message, ticket.sequence);
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(body);
    return status;
}

static void settle_taken(cwist_jq__queue *queue, cwist_jq__post *post, const cwist_jq__job *job,
                         const cwist_jq__wait *wait, cwist_jq__failure *failure)
{
    bool stored = false;
    int status = is_stored(&stored, queue, post, job, wait);

    if (status == CWIST_SUCCESS && !stored) {
        status = cwist_jq__fail(CWIST_ERROR_CONFLICT,
                                "another job was published under the dedupe key of this one");
    }
    post->code = status;
    if (status != CWIST_SUCCESS) {
        cwist_jq__failure_note(failure, post->item, status);
    }
}

/* The posts for which the stream had no room are to be sent again, or they have failed. */
static bool retry_full(cwist_jq__post *posts, size_t count, int lifted, cwist_jq__failure *failure)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (posts[i].code != CWIST_JQ_NO_ROOM) {
            continue;
        }
        any = true;
        posts[i].code = lifted == CWIST_SUCCESS ? CWIST_JQ_PENDING : lifted;
        if (lifted != CWIST_SUCCESS) {
            cwist_jq__failure_note(failure, posts[i].item, lifted);
        }
    }
    return any && lifted == CWIST_SUCCESS;
}

static bool is_any_full(const cwist_jq__post *posts, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        any = any || posts[i].code == CWIST_JQ_NO_ROOM;
    }
    return any;
}

/*
 * Stores the posts. A limit of the queue is for enqueues, so it is lifted while the copies of jobs
 * that are there already need room; not below 2.10, where jobs would be deleted when it is put
 * back: there some may stay without room. True when it is to be put back.
 */
static bool store_all(cwist_jq__queue *queue, cwist_jq__post *posts, size_t count, const move *how,
                      const cwist_jq__wait *wait, cwist_jq__failure *failure)
{
    bool may_lift = !cwist_jq__nats_of(queue)->below_2_10;
    bool again = true;
    bool lifted = false;

    while (again) {
        cwist_jq__store(queue, posts, count, how->goal, wait, failure);
        again = may_lift && is_any_full(posts, count);
        if (again) {
            int status = cwist_jq__passed(wait->deadline)
                             ? cwist_jq__fail(CWIST_ERROR_FULL, "the queue is full")
                             : cwist_jq__lift_limit(queue, true, wait);
            lifted = lifted || status == CWIST_SUCCESS;
            again = retry_full(posts, count, status, failure);
        }
    }
    return lifted;
}

/* The jobs that got no copy are nacked: they are back at once, with the attempt spent. */
static void nack_rest(cwist_jq__queue *queue, cwist_jq__job *const *jobs, cwist_jq__post *posts,
                      size_t count, const cwist_jq__wait *wait, cwist_jq__failure *failure)
{
    for (size_t i = 0; i < count; i++) {
        cwist_jq__failure told = {0};
        cwist_jq__ending ending = {.queue = queue,
                                   .jobs = &jobs[i],
                                   .count = 1,
                                   .codes = &posts[i].code,
                                   .failure = &told,
                                   .word = "-NAK",
                                   .word_len = 4,
                                   .fenced = true};
        if (posts[i].code == CWIST_JQ_NO_ROOM) {
            cwist_jq__confirm(&ending, wait);
        }
        if (told.code != CWIST_SUCCESS) {
            cwist_jq__failure_note(failure, posts[i].item, cwist_jq__failure_tell(&told));
        }
    }
}

static size_t move_piece(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t first,
                         size_t count, cwist_jq__post *posts, const move *how,
                         const cwist_jq__wait *wait, int *codes, cwist_jq__failure *failure)
{
    size_t taken = piece_of(jobs + first, count - first);

    for (size_t i = 0; i < taken; i++) {
        cwist_jq__post_init(&posts[i], first + i);
        fill_post(&posts[i], queue, jobs[first + i], how, wait, failure);
    }
    bool lifted = store_all(queue, posts, taken, how, wait, failure);
    for (size_t i = 0; i < taken; i++) {
        if (posts[i].code == CWIST_JQ_TAKEN) {
            settle_taken(queue, &posts[i], jobs[first + i], wait, failure);
        }
    }
    end_originals(queue, jobs + first, posts, taken, how, wait, failure);
    nack_rest(queue, jobs + first, posts, taken, wait, failure);
    if (lifted) { /* should it fail, a producer with the limit does it */
        (void)cwist_jq__lift_limit(queue, false, wait);
    }
    for (size_t i = 0; i < taken; i++) {
        codes[first + i] = posts[i].code;
        cwist_jq__post_clear(&posts[i]);
    }
    return taken;
}

static int move_all(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                    const move *how, uint64_t deadline, int *codes)
{
    cwist_jq__wait wait = {deadline, NULL};
    cwist_jq__failure failure = {0};
    size_t room = count < CWIST_JQ_BURST_MAX ? count : CWIST_JQ_BURST_MAX;
    cwist_jq__post *posts = cwist_jq__alloc(room * sizeof *posts);

    for (size_t i = 0; i < count; i++) {
        codes[i] = CWIST_ERROR_NOT_SENT;
    }
    if (posts == NULL) {
        codes[0] = cwist_jq__no_memory();
        return codes[0];
    }
    cwist_jq__lease_review(queue, jobs, count, &wait);
    for (size_t done = 0; done < count;) {
        done += move_piece(queue, jobs, done, count, posts, how, &wait, codes, &failure);
    }
    cwist_jq__free(posts);
    return cwist_jq__failure_tell(&failure);
}

int cwist_jq__nats_release(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                           uint64_t delay_ms, uint64_t deadline, int *codes)
{
    move how = {CWIST_JQ_FOR_COPY, CWIST_JQ_CAUSE_NACKED, NULL, delay_ms};
    cwist_jq__wait wait = {deadline, NULL};
    int status = delay_ms != 0 ? cwist_jq__ensure_schedules(queue, &wait) : CWIST_SUCCESS;

    if (status != CWIST_SUCCESS) {
        for (size_t i = 0; i < count; i++) {
            codes[i] = i == 0 ? status : CWIST_ERROR_NOT_SENT;
        }
        return status;
    }
    return move_all(queue, jobs, count, &how, deadline, codes);
}

int cwist_jq__nats_bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                        cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes)
{
    move how = {CWIST_JQ_FOR_DEAD, cause, text, 0};
    return move_all(queue, jobs, count, &how, deadline, codes);
}
