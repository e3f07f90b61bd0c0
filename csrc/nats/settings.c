/*
 * Settings of the job stream that only some queues need: batches of all or none, delayed jobs, a
 * limit. Each is made by the first call that needs it: the server's own configuration is sent back
 * with that changed, and read back, because servers take no notice of settings they do not know.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define LOOK_MS 4000
/* Added to a limit while the library's own copies are stored; no limit is as high by itself. */
#define LIFTED (INT64_C(1) << 40)

static int too_old(cwist_jq__queue *queue, const char *needed, const char *what)
{
    const char *version = cwist_jq__nats_of(queue)->version;

    return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                          "the NATS server is version %s; %s or newer is needed for %s",
                          version[0] != '\0' ? version : "(unknown)", needed, what);
}

/* The stream as the server tells of it. *answer is the caller's to clear. */
static int look(cwist_jq__answer *answer, cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats *nats = cwist_jq__nats_of(queue);
    uint64_t asked = cwist_jq__now();
    int status = cwist_jq__stream_info(answer, queue, "", NULL, wait);

    if (status == CWIST_SUCCESS && answer->error != 0) {
        status = cwist_jq__answer_fail(answer, "stream info");
    }
    if (status == CWIST_SUCCESS) {
        cwist_jq__clock_note(nats, answer, asked);
    }
    return status;
}

/* Sends a whole configuration; *answer is what became of it, and the caller's to clear. */
static int change(cwist_jq__answer *answer, cwist_jq__queue *queue, const cwist_jq__text *config,
                  const cwist_jq__wait *wait)
{
    char *subject =
        cwist_jq__format("$JS.API.STREAM.UPDATE.%s", cwist_jq__nats_queue_of(queue)->stream);
    int status = subject != NULL && !config->failed
                     ? cwist_jq__api(answer, cwist_jq__nats_of(queue), subject, config->data, wait)
                     : cwist_jq__no_memory();

    cwist_jq__free(subject);
    return status;
}

static bool has_flag(const cwist_jq__answer *answer, const char *flag)
{
    cwist_jq__json config = cwist_jq__json_member(answer->json, "config");

    return cwist_jq__json_true(cwist_jq__json_member(config, flag));
}

/* ---- batches of all or none ---- */

static int allow_batches(cwist_jq__queue *queue, const cwist_jq__answer *seen,
                         const cwist_jq__wait *wait)
{
    cwist_jq__json config = cwist_jq__json_member(seen->json, "config");
    cwist_jq__answer answer;
    cwist_jq__text text;

    memset(&text, 0, sizeof text);
    memset(&answer, 0, sizeof answer);
    cwist_jq__text_object_with(&text, config, "allow_atomic", "true");
    int status = change(&answer, queue, &text, wait);
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "cannot set allow_atomic on the stream");
    } else if (status == CWIST_SUCCESS && !has_flag(&answer, "allow_atomic")) {
        status = too_old(queue, "2.12", "batches of all or none");
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__text_clear(&text);
    return status;
}

int cwist_jq__ensure_atomic(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;

    if (atomic_load(&own->takes_atomic)) {
        return CWIST_SUCCESS;
    }
    memset(&answer, 0, sizeof answer);
    int status = cwist_jq__ensure_jobs(queue, wait);
    if (status == CWIST_SUCCESS) {
        status = look(&answer, queue, wait);
    }
    if (status == CWIST_SUCCESS && !has_flag(&answer, "allow_atomic")) {
        status = allow_batches(queue, &answer, wait);
    }
    atomic_store(&own->takes_atomic, status == CWIST_SUCCESS);
    cwist_jq__answer_clear(&answer);
    return status;
}

/* ---- delayed jobs ---- */

/* The stream's subjects and the one of the jobs that wait, as JSON. */
static void add_wait_subject(cwist_jq__text *text, cwist_jq__json subjects,
                             const cwist_jq__nats_queue *own)
{
    cwist_jq__json item = {NULL, 0};
    char wanted[CWIST_JQ_SUBJECT_SIZE];

    (void)snprintf(wanted, sizeof wanted, "%s=wait.>", own->stream);
    cwist_jq__text_format(text, "[\"%s\"", wanted);
    while (cwist_jq__json_each(subjects, &item)) {
        if (!cwist_jq__json_is(item, wanted)) {
            cwist_jq__text_add(text, ",", 1);
            cwist_jq__text_add(text, item.text, item.len);
        }
    }
    cwist_jq__text_add(text, "]", 1);
}

static int allow_schedules(cwist_jq__queue *queue, const cwist_jq__answer *seen,
                           const cwist_jq__wait *wait)
{
    cwist_jq__json config = cwist_jq__json_member(seen->json, "config");
    cwist_jq__text subjects;
    cwist_jq__text some;
    cwist_jq__text all;
    cwist_jq__answer answer;

    if (cwist_jq__json_is(cwist_jq__json_member(config, "discard"), "new")) {
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                              "the queue has a max_length; on NATS such a queue takes no delayed "
                              "jobs");
    }
    memset(&subjects, 0, sizeof subjects);
    memset(&some, 0, sizeof some);
    memset(&all, 0, sizeof all);
    memset(&answer, 0, sizeof answer);
    add_wait_subject(&subjects, cwist_jq__json_member(config, "subjects"),
                     cwist_jq__nats_queue_of(queue));
    bool failed = subjects.failed;
    cwist_jq__text_object_with(&some, config, "subjects", failed ? "[]" : subjects.data);
    failed = failed || some.failed;
    if (!failed) {
        cwist_jq__json with = {some.data, some.len};
        cwist_jq__text_object_with(&all, with, "allow_msg_schedules", "true");
    }
    int status = failed ? cwist_jq__no_memory() : change(&answer, queue, &all, wait);
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "cannot set allow_msg_schedules on the stream");
    } else if (status == CWIST_SUCCESS && !has_flag(&answer, "allow_msg_schedules")) {
        status = too_old(queue, "2.12", "delayed jobs");
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__text_clear(&all);
    cwist_jq__text_clear(&some);
    cwist_jq__text_clear(&subjects);
    return status;
}

bool cwist_jq__has_waiting(const cwist_jq__answer *answer, const cwist_jq__queue *queue)
{
    cwist_jq__json config = cwist_jq__json_member(answer->json, "config");
    cwist_jq__json item = {NULL, 0};
    char wanted[CWIST_JQ_SUBJECT_SIZE];
    bool found = false;

    (void)snprintf(wanted, sizeof wanted, "%s=wait.>", cwist_jq__nats_queue_of(queue)->stream);
    while (!found && cwist_jq__json_each(cwist_jq__json_member(config, "subjects"), &item)) {
        found = cwist_jq__json_is(item, wanted);
    }
    return found;
}

bool cwist_jq__is_older(const cwist_jq__nats *nats, unsigned minor)
{
    return nats->version[0] != '\0' && nats->minor < minor;
}

int cwist_jq__ensure_schedules(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__nats *nats = cwist_jq__nats_of(queue);
    cwist_jq__answer answer;

    if (queue->max_length != 0) {
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                              "the queue was opened with max_length; on NATS such a queue takes no "
                              "delayed jobs");
    }
    if (cwist_jq__is_older(nats, 12)) {
        return too_old(queue, "2.12", "delayed jobs");
    }
    if (atomic_load(&own->takes_schedules) && cwist_jq__clock_known(nats)) {
        return CWIST_SUCCESS;
    }
    memset(&answer, 0, sizeof answer);
    int status = cwist_jq__ensure_jobs(queue, wait);
    if (status == CWIST_SUCCESS) {
        status = look(&answer, queue, wait);
    }
    if (status == CWIST_SUCCESS &&
        (!cwist_jq__has_waiting(&answer, queue) || !has_flag(&answer, "allow_msg_schedules"))) {
        status = allow_schedules(queue, &answer, wait);
    }
    if (status == CWIST_SUCCESS && !cwist_jq__clock_known(nats)) {
        status = cwist_jq__fail(CWIST_ERROR_PROTOCOL, "the server does not tell its time");
    }
    atomic_store(&own->takes_schedules, status == CWIST_SUCCESS);
    cwist_jq__answer_clear(&answer);
    return status;
}

/* ---- a limit ---- */

static int64_t limit_of(const cwist_jq__answer *answer)
{
    cwist_jq__json config = cwist_jq__json_member(answer->json, "config");

    return cwist_jq__json_int(cwist_jq__json_member(config, "max_msgs"), -1);
}

static bool discards_new(const cwist_jq__answer *answer)
{
    cwist_jq__json config = cwist_jq__json_member(answer->json, "config");

    return cwist_jq__json_is(cwist_jq__json_member(config, "discard"), "new");
}

static int set_limit(cwist_jq__queue *queue, const cwist_jq__answer *seen, int64_t limit,
                     const cwist_jq__wait *wait)
{
    cwist_jq__json config = cwist_jq__json_member(seen->json, "config");
    cwist_jq__text some;
    cwist_jq__text all;
    cwist_jq__answer answer;
    char number[32];

    memset(&some, 0, sizeof some);
    memset(&all, 0, sizeof all);
    memset(&answer, 0, sizeof answer);
    (void)snprintf(number, sizeof number, "%lld", (long long)limit);
    cwist_jq__text_object_with(&some, config, "max_msgs", number);
    if (!some.failed) {
        cwist_jq__json with = {some.data, some.len};
        cwist_jq__text_object_with(&all, with, "discard", "\"new\"");
    }
    int status = some.failed ? cwist_jq__no_memory() : change(&answer, queue, &all, wait);
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "cannot set max_msgs on the stream");
    } else if (status == CWIST_SUCCESS && (limit_of(&answer) != limit || !discards_new(&answer))) {
        status = cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                                "the server does not keep max_msgs with discard new");
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__text_clear(&all);
    cwist_jq__text_clear(&some);
    return status;
}

/* What must be so before the stream is given the limit of the handle. */
static int may_limit(cwist_jq__queue *queue, const cwist_jq__answer *seen)
{
    cwist_jq__json state = cwist_jq__json_member(seen->json, "state");

    if (has_flag(seen, "allow_msg_schedules")) {
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                              "max_length: the queue has had delayed jobs; on NATS such a queue "
                              "takes no limit");
    }
    /* 2.9.10 deletes what is over a new limit, whatever is to be discarded. */
    if (cwist_jq__nats_of(queue)->below_2_10 &&
        cwist_jq__json_int(cwist_jq__json_member(state, "messages"), 1) != 0) {
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                              "max_length: the NATS server is version %s; below 2.10 a queue that "
                              "holds jobs cannot be given a limit: drain it first",
                              cwist_jq__nats_of(queue)->version);
    }
    return CWIST_SUCCESS;
}

/*
 * The first look of a handle sets its limit. Later ones take a limit that was lifted, and left so
 * by a process that ended there, down again, and set one that is gone.
 */
int cwist_jq__ensure_limit(cwist_jq__queue *queue, const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;
    int64_t wanted = (int64_t)queue->max_length;

    if (queue->max_length == 0 || !cwist_jq__passed(atomic_load(&own->limit_at))) {
        return CWIST_SUCCESS;
    }
    memset(&answer, 0, sizeof answer);
    int status = look(&answer, queue, wait);
    if (status == CWIST_SUCCESS) {
        int64_t has = limit_of(&answer);
        bool first = atomic_load(&own->limit_at) == 0;
        bool set = has > 0 && has < LIFTED && discards_new(&answer);
        if (!set || (first && has != wanted)) {
            status = may_limit(queue, &answer);
            status = status == CWIST_SUCCESS ? set_limit(queue, &answer, wanted, wait) : status;
        }
    }
    if (status == CWIST_SUCCESS) {
        atomic_store(&own->limit_at, cwist_jq__after_ms(LOOK_MS));
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

int cwist_jq__lift_limit(cwist_jq__queue *queue, bool lifted, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;

    memset(&answer, 0, sizeof answer);
    int status = look(&answer, queue, wait);
    if (status == CWIST_SUCCESS) {
        int64_t has = limit_of(&answer);
        if (has > 0 && (has >= LIFTED) != lifted) {
            status = set_limit(queue, &answer, lifted ? has + LIFTED : has - LIFTED, wait);
        }
    }
    cwist_jq__answer_clear(&answer);
    return status;
}
