/* An item of an enqueue as a message: its subject, its headers, and who holds its key. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

#define ONCE "Nats-Expected-Last-Subject-Sequence"

size_t cwist_jq__item_size(const cwist_job_item_t *item)
{
    size_t size = item->len;

    for (size_t i = 0; i < item->header_count; i++) {
        size += strlen(item->headers[i].name) + strlen(item->headers[i].value) + 4;
    }
    return size;
}

void cwist_jq__schedule(cwist_jq__headers *headers, uint64_t due, const char *target)
{
    char moment[CWIST_JQ_MOMENT_SIZE];

    cwist_jq__moment_write(moment, due);
    cwist_jq__headers_own(headers, "Nats-Schedule", cwist_jq__format("@at %s", moment));
    cwist_jq__headers_own(headers, "Nats-Schedule-Target", cwist_jq__strdup(target));
}

char *cwist_jq__waiting_subject(const cwist_jq__queue *queue, const char *target, const char *id)
{
    const cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);

    return cwist_jq__key_token(queue, target) != NULL
               ? cwist_jq__format("%s=wait%s", own->stream, target + strlen(own->stream))
               : cwist_jq__format("%s=wait.%s", own->stream, id);
}

/* Refused while a job with the key lives, ready, claimed or delayed. */
static void add_key(cwist_jq__post *post, const cwist_jq__queue *queue)
{
    size_t stream = strlen(cwist_jq__nats_queue_of(queue)->stream);

    cwist_jq__headers_add(&post->headers, ONCE, "0");
    if (!cwist_jq__is_older(cwist_jq__nats_of(queue), 12)) {
        /* Older servers have no delayed jobs, and 2.9.10 would take this for the header above. */
        cwist_jq__headers_own(&post->headers, ONCE "-Subject",
                              cwist_jq__format("*%s", post->subject + stream));
    }
    post->keyed = true;
}

/*
 * A delayed job has no sequence yet that could be its id. Its number is at random among those that
 * no sequence reaches.
 */
static void add_delay(cwist_jq__post *post, const cwist_jq__queue *queue, uint64_t delay_ms)
{
    const char *target =
        post->subject != NULL ? post->subject : cwist_jq__nats_queue_of(queue)->jobs;
    uint64_t now = cwist_jq__clock_ms(cwist_jq__nats_of(queue)) + 1; /* parts of one are left out */
    unsigned long long id = cwist_jq__random() | UINT64_C(1) << 63;

    cwist_jq__headers_own(&post->headers, "Cwist-Id", cwist_jq__format("%llu", id));
    if (post->headers.failed) {
        return;
    }
    post->id = post->headers.list[post->headers.count - 1].value;
    cwist_jq__headers_own(&post->headers, "Cwist-First",
                          cwist_jq__format("%llu", (unsigned long long)now));
    cwist_jq__schedule(&post->headers, now + delay_ms, target);
    char *waiting = cwist_jq__waiting_subject(queue, target, post->id);
    cwist_jq__free(post->subject);
    post->subject = waiting;
    post->headers.failed = post->headers.failed || waiting == NULL;
    post->scheduled = true;
}

int cwist_jq__item_fill(cwist_jq__post *post, const cwist_jq__queue *queue,
                        const cwist_job_item_t *item)
{
    bool failed = false;

    cwist_jq__headers_type(&post->headers, item->type);
    for (size_t i = 0; i < item->header_count; i++) {
        cwist_jq__headers_add(&post->headers, item->headers[i].name, item->headers[i].value);
    }
    if (item->dedupe_key != NULL) {
        post->subject = cwist_jq__key_subject(queue, item->dedupe_key);
        failed = post->subject == NULL;
    }
    if (!failed && item->dedupe_key != NULL) {
        add_key(post, queue);
    }
    if (!failed && item->delay_ms != 0) {
        add_delay(post, queue, item->delay_ms);
    }
    post->request.subject =
        post->subject != NULL ? post->subject : cwist_jq__nats_queue_of(queue)->jobs;
    post->request.data = item->payload != NULL ? item->payload : "";
    post->request.len = item->len;
    post->request.headers = post->headers.list;
    post->request.header_count = post->headers.count;
    return failed || post->headers.failed ? cwist_jq__no_memory() : CWIST_SUCCESS;
}

int cwist_jq__holder_ask(cwist_jq__ask *ask, const char *get, const char *subject)
{
    /* What stands behind the first token is the same for a job that waits for its time. */
    ask->subject = get;
    ask->body = cwist_jq__format("{\"last_by_subj\":\"*%s\"}", strchr(subject, '.'));
    return ask->body != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
}

bool cwist_jq__holder_read(char *id, const cwist_jq__ask *ask)
{
    cwist_jq__json stored = cwist_jq__json_member(ask->answer.json, "message");
    uint64_t number = 0;

    if (ask->answer.error != 0 || stored.text == NULL) {
        return false;
    }
    natsMsg *message = cwist_jq__stored_headers(stored);
    const char *own = message != NULL ? cwist_jq__header_of(message, "Cwist-Id") : NULL;
    if (!cwist_jq__decimal(&number, own) || number == 0) {
        number = (uint64_t)cwist_jq__json_int(cwist_jq__json_member(stored, "seq"), 0);
    }
    (void)cwist_jq__put_number(id, number);
    natsMsg_Destroy(message);
    return number != 0;
}
