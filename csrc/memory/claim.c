/* Claims: they bring back what is due or lapsed, take what is ready, and wait for each other. */
#include <stdio.h>
#include <string.h>

#include "memory/memory.h"
#include "platform/clock.h"

int cwist_jq__memory_claim_start(cwist_jq__claim *claim)
{
    (void)cwist_jq__memory_enter(claim->queue);
    cwist_jq__memory_of(claim->queue)->worker->waiting++;
    cwist_jq__memory_leave(claim->queue);
    claim->impl = claim->queue->impl;
    return CWIST_SUCCESS;
}

void cwist_jq__memory_claim_end(cwist_jq__claim *claim)
{
    (void)cwist_jq__memory_enter(claim->queue);
    cwist_jq__memory_of(claim->queue)->worker->waiting--;
    cwist_jq__memory_leave(claim->queue);
    claim->impl = NULL;
}

/*
 * The first claim of a handle sets the visibility of the queue. Returns the one before, when it was
 * another; else 0.
 */
static uint64_t settle_visibility(cwist_jq__queue *queue)
{
    cwist_jq__memory_handle *handle = cwist_jq__memory_of(queue);
    uint64_t before = handle->queue->visibility_ms;

    if (handle->settled) {
        return 0;
    }
    handle->settled = true;
    if (before == queue->visibility_ms) {
        return 0;
    }
    handle->queue->visibility_ms = queue->visibility_ms;
    atomic_store(&queue->server_visibility_ms, queue->visibility_ms);
    cwist_jq__condition_wake_all(&handle->queue->changed); /* leases may end sooner */
    return before;
}

/* Gives a ready job to the claim's handle. */
static int deliver(cwist_jq__queue *queue, cwist_jq__memory_job *job, uint64_t now,
                   cwist_jq__job **out)
{
    const cwist_jq__memory_handle *handle = cwist_jq__memory_of(queue);
    cwist_jq__memory_queue *own = handle->queue;
    cwist_jq__memory_body *body = job->body;
    char id[24];
    char receipt[24];
    int id_len = snprintf(id, sizeof id, "%llu", (unsigned long long)job->by_id.hash);
    int receipt_len =
        snprintf(receipt, sizeof receipt, "%llu", (unsigned long long)(own->last_delivery + 1));
    cwist_jq__delivery delivery = {
        .id = id,
        .id_len = (size_t)id_len,
        .type = body->type,
        .type_len = body->type_len,
        .receipt = receipt,
        .receipt_len = (size_t)receipt_len,
        .key = job->has_key ? body->key : NULL,
        .key_len = job->has_key ? body->key_len : 0,
        .headers = body->headers,
        .header_count = body->header_count,
        .payload = body->payload,
        .payload_len = body->payload_len,
        .attempts = job->attempts + 1,
        .lease_starts = now,
        .lease_ends = cwist_jq__add_ms(now, cwist_jq__lease_ms(queue)),
        .body = body,
        .body_free = cwist_jq__memory_body_unref,
    };

    cwist_jq__memory_body_ref(body);
    int status = cwist_jq__job_new(out, queue, &delivery);
    if (status == CWIST_SUCCESS) {
        cwist_jq__memory_take_out(own, job);
        cwist_jq__memory_to_claimed(own, job, handle->worker, now);
        job->delivery = ++own->last_delivery;
        job->attempts++;
    }
    return status;
}

/* Takes what is ready, up to claim->most jobs. */
static int take(const cwist_jq__claim *claim, cwist_jq__memory_queue *own, cwist_jq__job **jobs,
                size_t *count)
{
    uint64_t now = cwist_jq__now();
    int status = CWIST_SUCCESS;

    *count = 0;
    cwist_jq__memory_recover(own, now);
    while (status == CWIST_SUCCESS && !own->paused && *count < claim->most &&
           own->ready.first != NULL) {
        status = deliver(claim->queue, own->ready.first, now, &jobs[*count]);
        *count += status == CWIST_SUCCESS ? 1 : 0;
    }
    return *count != 0 ? CWIST_SUCCESS : status;
}

/* Waits for another thread, or for time to do something, until `until` at most. */
static int wait_for_change(const cwist_jq__claim *claim, cwist_jq__memory_queue *own,
                           uint64_t until)
{
    uint64_t now = cwist_jq__now();

    if (now >= claim->deadline) {
        return cwist_jq__fail(CWIST_ERROR_TIMEOUT, "no job came");
    }
    if (now >= until) {
        return CWIST_JQ_PENDING;
    }
    uint64_t look = cwist_jq__earlier(cwist_jq__memory_next_moment(own),
                                      cwist_jq__add_ms(now, CWIST_JQ_SLICE_MS));
    look = cwist_jq__earlier(look, cwist_jq__earlier(until, claim->deadline));
    cwist_jq__condition_wait(&own->changed, &cwist_jq__memory_of(claim->queue)->store->lock, look);
    return cwist_jq__claim_check(claim);
}

int cwist_jq__memory_claim_wait(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs,
                                size_t *count)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_enter(claim->queue);
    uint64_t before = settle_visibility(claim->queue);
    int status = take(claim, own, jobs, count);

    while (status == CWIST_SUCCESS && *count == 0) {
        status = wait_for_change(claim, own, until);
        if (status == CWIST_SUCCESS) {
            status = take(claim, own, jobs, count);
        }
    }
    cwist_jq__memory_leave(claim->queue);
    if (before != 0) {
        cwist_jq__visibility_taken_over(claim->queue, before);
    }
    return status;
}

int cwist_jq__memory_ack_and_poll(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                                  int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got)
{
    (void)cwist_jq__memory_ack(claim->queue, jobs, count, deadline, codes);
    cwist_jq__memory_queue *own = cwist_jq__memory_enter(claim->queue);
    uint64_t before = settle_visibility(claim->queue);
    int status = take(claim, own, next, got);
    cwist_jq__memory_leave(claim->queue);
    if (before != 0) {
        cwist_jq__visibility_taken_over(claim->queue, before);
    }
    return status;
}
