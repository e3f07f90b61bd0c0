/* The two streams of a queue: made when missing, checked when not. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define DELETION_MS 250

/* A stream as this backend wants it. */
typedef struct plan {
    const char *name;
    const char *retention;
    const char *subjects[2]; /* the second may be NULL */
    uint64_t limit;          /* messages; 0: no limit */
} plan;

static int conflict(const plan *wanted, const char *what, const char *has, const char *wants)
{
    return cwist_jq__fail(CWIST_ERROR_CONFLICT,
                          "stream %s exists with %s %s; this queue needs %s; move its messages "
                          "and delete it, or use another queue name",
                          wanted->name, what, has, wants);
}

static int check_word(const plan *wanted, cwist_jq__json config, const char *what,
                      const char *wants)
{
    char has[64];
    cwist_jq__json value = cwist_jq__json_member(config, what);

    if (cwist_jq__json_is(value, wants)) {
        return CWIST_SUCCESS;
    }
    cwist_jq__json_copy(value, has, sizeof has);
    return conflict(wanted, what, has[0] != '\0' ? has : "(none)", wants);
}

/* The strings of an array with commas between them, cut to fit. */
static void list_items(char *out, size_t size, cwist_jq__json array)
{
    cwist_jq__json item = {NULL, 0};
    size_t used = 0;

    out[0] = '\0';
    while (used + 3 < size && cwist_jq__json_each(array, &item)) {
        if (used > 0) {
            memcpy(out + used, ", ", 3);
            used += 2;
        }
        cwist_jq__json_copy(item, out + used, size - used);
        used += strlen(out + used);
    }
}

/* The subjects must be there; more than these are not ours to judge. */
static int check_subjects(const plan *wanted, cwist_jq__json config)
{
    cwist_jq__json subjects = cwist_jq__json_member(config, "subjects");

    for (size_t i = 0; i < 2 && wanted->subjects[i] != NULL; i++) {
        cwist_jq__json item = {NULL, 0};
        bool found = false;
        while (!found && cwist_jq__json_each(subjects, &item)) {
            found = cwist_jq__json_is(item, wanted->subjects[i]);
        }
        if (!found) {
            char has[200];
            list_items(has, sizeof has, subjects);
            return conflict(wanted, "subjects", has[0] != '\0' ? has : "(none)",
                            wanted->subjects[i]);
        }
    }
    return CWIST_SUCCESS;
}

static int check_stream(const plan *wanted, cwist_jq__json config)
{
    int status = check_word(wanted, config, "retention", wanted->retention);

    if (status == CWIST_SUCCESS) {
        status = check_word(wanted, config, "storage", "file");
    }
    if (status == CWIST_SUCCESS) {
        status = check_subjects(wanted, config);
    }
    if (status == CWIST_SUCCESS && cwist_jq__json_true(cwist_jq__json_member(config, "no_ack"))) {
        status = conflict(wanted, "no_ack", "true", "false");
    }
    return status;
}

static int create_stream(cwist_jq__answer *answer, cwist_jq__nats *nats, const plan *wanted,
                         const cwist_jq__wait *wait)
{
    const char *second = wanted->subjects[1];
    int64_t limit = wanted->limit != 0 ? (int64_t)wanted->limit : -1;
    char *subject = cwist_jq__format("$JS.API.STREAM.CREATE.%s", wanted->name);
    char *body = cwist_jq__format(
        "{\"name\":\"%s\",\"subjects\":[\"%s\"%s%s%s],\"retention\":\"%s\",\"storage\":\"file\","
        "\"discard\":\"%s\",\"num_replicas\":1,\"max_consumers\":-1,\"max_msgs\":%lld,"
        "\"max_bytes\":-1,\"max_age\":0,\"max_msg_size\":-1,\"max_msgs_per_subject\":-1}",
        wanted->name, wanted->subjects[0], second != NULL ? ",\"" : "",
        second != NULL ? second : "", second != NULL ? "\"" : "", wanted->retention,
        limit > 0 ? "new" : "old", (long long)limit);
    int status = subject != NULL && body != NULL ? cwist_jq__api(answer, nats, subject, body, wait)
                                                 : cwist_jq__no_memory();
    cwist_jq__free(subject);
    cwist_jq__free(body);
    return status;
}

/* SUCCESS with *missing told, or the error. The answer stays open for the caller. */
static int look_at_stream(cwist_jq__answer *answer, bool *missing, cwist_jq__nats *nats,
                          const plan *wanted, const cwist_jq__wait *wait)
{
    char *subject = cwist_jq__format("$JS.API.STREAM.INFO.%s", wanted->name);
    int status =
        subject != NULL ? cwist_jq__api(answer, nats, subject, NULL, wait) : cwist_jq__no_memory();

    *missing = false;
    if (status == CWIST_SUCCESS && answer->error == CWIST_JQ_ERR_STREAM_NOT_FOUND) {
        *missing = true;
    } else if (status == CWIST_SUCCESS && answer->error != 0) {
        status = cwist_jq__answer_fail(answer, "stream info");
    } else if (status == CWIST_SUCCESS) {
        status = check_stream(wanted, cwist_jq__json_member(answer->json, "config"));
    }
    cwist_jq__free(subject);
    return status;
}

/*
 * A stream that is being deleted is reported missing while the server still removes its files. One
 * that is made in that moment loses them too (seen with 2.9.10: it takes jobs and never delivers
 * them). So a stream that was there before is made again only when it was missing for a while.
 */
static int let_deletion_end(cwist_jq__answer *answer, bool *missing, cwist_jq__nats *nats,
                            const plan *wanted, const cwist_jq__wait *wait, cwist_jq__seen *seen)
{
    int status = CWIST_SUCCESS;

    if (atomic_load(&seen->settled) == 0) {
        atomic_store(&seen->settled, cwist_jq__after_ms(DELETION_MS));
    }
    while (status == CWIST_SUCCESS && !cwist_jq__passed(atomic_load(&seen->settled))) {
        uint64_t end = cwist_jq__earlier(atomic_load(&seen->settled), wait->deadline);
        cwist_jq__sleep_until(cwist_jq__earlier(end, cwist_jq__after_ms(CWIST_JQ_SLICE_MS)));
        status = cwist_jq__wait_check(wait);
    }
    if (status == CWIST_JQ_PENDING) {
        return cwist_jq__fail(CWIST_ERROR_IO, "stream %s is being deleted", wanted->name);
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__answer_clear(answer);
        status = look_at_stream(answer, missing, nats, wanted, wait);
    }
    return status;
}

/*
 * Somebody may have been quicker. A server below 2.10 can say then that the subjects overlap with
 * another stream, and means the one of this name.
 */
static int find_after_refusal(const cwist_jq__answer *refusal, cwist_jq__nats *nats,
                              const plan *wanted, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    bool missing = true;
    int status = CWIST_SUCCESS;

    memset(&answer, 0, sizeof answer);
    if (refusal->error == CWIST_JQ_ERR_STREAM_EXISTS ||
        refusal->error == CWIST_JQ_ERR_SUBJECTS_OVERLAP) {
        status = look_at_stream(&answer, &missing, nats, wanted, wait);
    }
    if (status == CWIST_SUCCESS && missing) {
        status = cwist_jq__answer_fail(refusal, "cannot create the stream");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

static int ensure_stream(cwist_jq__nats *nats, const plan *wanted, const cwist_jq__wait *wait,
                         cwist_jq__seen *seen)
{
    cwist_jq__answer answer;
    bool missing = false;

    memset(&answer, 0, sizeof answer);
    int status = look_at_stream(&answer, &missing, nats, wanted, wait);
    if (status == CWIST_SUCCESS && missing && atomic_load(&seen->before)) {
        status = let_deletion_end(&answer, &missing, nats, wanted, wait, seen);
    }
    if (status == CWIST_SUCCESS && missing) {
        cwist_jq__answer_clear(&answer);
        status = create_stream(&answer, nats, wanted, wait);
        if (status == CWIST_SUCCESS && answer.error != 0) {
            status = find_after_refusal(&answer, nats, wanted, wait);
        }
    }
    if (status == CWIST_SUCCESS) {
        atomic_store(&seen->before, true);
        atomic_store(&seen->settled, 0);
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

int cwist_jq__stream_info(cwist_jq__answer *answer, cwist_jq__queue *queue, const char *suffix,
                          const char *body, const cwist_jq__wait *wait)
{
    char subject[CWIST_JQ_SUBJECT_SIZE];

    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s%s",
                   cwist_jq__nats_queue_of(queue)->stream, suffix);
    return cwist_jq__api(answer, cwist_jq__nats_of(queue), subject, body, wait);
}

int cwist_jq__get_message(cwist_jq__answer *answer, cwist_jq__queue *queue, const char *suffix,
                          const char *body, const cwist_jq__wait *wait)
{
    char subject[CWIST_JQ_SUBJECT_SIZE];

    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.MSG.GET.%s%s",
                   cwist_jq__nats_queue_of(queue)->stream, suffix);
    return cwist_jq__api(answer, cwist_jq__nats_of(queue), subject, body, wait);
}

int cwist_jq__ensure_jobs(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    char *tree = cwist_jq__format("%s.>", own->jobs);
    plan wanted = {own->stream, "workqueue", {own->jobs, tree}, queue->max_length};
    int status = tree != NULL
                     ? ensure_stream(cwist_jq__nats_of(queue), &wanted, wait, &own->jobs_seen)
                     : cwist_jq__no_memory();

    if (status == CWIST_SUCCESS) {
        atomic_store(&own->stream_known, true);
    }
    cwist_jq__free(tree);
    return status;
}

int cwist_jq__ensure_dead(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    char *name = cwist_jq__format("%s_DEAD", own->stream);
    char *tree = cwist_jq__format("%s.dead.>", own->stream);
    plan wanted = {name, "limits", {tree, NULL}, 0};
    int status = name != NULL && tree != NULL
                     ? ensure_stream(cwist_jq__nats_of(queue), &wanted, wait, &own->dead_seen)
                     : cwist_jq__no_memory();

    cwist_jq__free(name);
    cwist_jq__free(tree);
    return status;
}

int cwist_jq__find_jobs(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    int status = cwist_jq__stream_info(&answer, queue, "", NULL, wait);

    if (status == CWIST_SUCCESS && answer.error == CWIST_JQ_ERR_STREAM_NOT_FOUND) {
        status = cwist_jq__fail(CWIST_ERROR_LEASE_LOST, "the stream of this job was deleted");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}
