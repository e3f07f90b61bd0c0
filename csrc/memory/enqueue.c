/* Jobs on their way into a store. Copies are made before the lock is taken. */
#include <stdio.h>
#include <string.h>

#include "memory/memory.h"
#include "platform/clock.h"

#define PAYLOAD_CEILING ((size_t)256 * 1024 * 1024)

int cwist_jq__memory_check_size(cwist_jq__queue *queue, const cwist_job_item_t *item)
{
    (void)queue;
    return item->len <= PAYLOAD_CEILING
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_TOO_LARGE, "the payload has %zu bytes; allowed: %zu",
                                item->len, PAYLOAD_CEILING);
}

/* FNV-1a */
static uint64_t hash_of(const char *key, size_t len)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)key[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static cwist_jq__memory_job *job_of_key_link(cwist_jq__memory_link *link)
{
    return (cwist_jq__memory_job *)(void *)((char *)link - offsetof(cwist_jq__memory_job, by_key));
}

/* The live job with that key; NULL: none. */
static const cwist_jq__memory_job *find_key(const cwist_jq__memory_queue *queue, const char *key,
                                            size_t len, uint64_t hash)
{
    cwist_jq__memory_link *link = cwist_jq__memory_table_first(&queue->keys, hash);

    for (; link != NULL; link = cwist_jq__memory_table_next(link)) {
        const cwist_jq__memory_job *job = job_of_key_link(link);
        if (job->body->key_len == len && memcmp(job->body->key, key, len) == 0) {
            return job;
        }
    }
    return NULL;
}

static void tell_id(cwist_job_stored_t *stored, const cwist_jq__memory_job *job)
{
    (void)snprintf(stored->id, sizeof stored->id, "%llu", (unsigned long long)job->by_id.hash);
}

static int check_room(const cwist_jq__queue *queue, cwist_jq__memory_queue *own)
{
    if (queue->max_length != 0 && cwist_jq__memory_live(own) >= queue->max_length) {
        return cwist_jq__fail(CWIST_ERROR_FULL, "the queue holds %llu jobs; allowed: %llu",
                              (unsigned long long)cwist_jq__memory_live(own),
                              (unsigned long long)queue->max_length);
    }
    bool room = cwist_jq__memory_table_reserve(&own->ids) &&
                cwist_jq__memory_table_reserve(&own->keys) &&
                cwist_jq__memory_heap_reserve(&own->delayed);
    return room ? CWIST_SUCCESS : cwist_jq__no_memory();
}

/* Stores one job and takes it off the caller's hands, unless it is a duplicate. */
static int store_one(const cwist_jq__queue *queue, cwist_jq__memory_job **job, uint64_t delay_ms,
                     uint64_t now, cwist_job_stored_t *stored)
{
    const cwist_jq__memory_handle *handle = cwist_jq__memory_of(queue);
    cwist_jq__memory_queue *own = handle->queue;
    const cwist_jq__memory_body *body = (*job)->body;
    uint64_t hash = body->key != NULL ? hash_of(body->key, body->key_len) : 0;
    const cwist_jq__memory_job *first =
        body->key != NULL ? find_key(own, body->key, body->key_len, hash) : NULL;

    if (first != NULL) {
        stored->duplicate = true;
        tell_id(stored, first);
        return CWIST_SUCCESS;
    }
    int status = check_room(queue, own);
    if (status != CWIST_SUCCESS) {
        return status;
    }
    (*job)->first_ms = cwist_jq__memory_time(handle->store, now);
    cwist_jq__memory_table_add(&own->ids, &(*job)->by_id, ++own->last_id);
    if (body->key != NULL) {
        cwist_jq__memory_table_add(&own->keys, &(*job)->by_key, hash);
        (*job)->has_key = true;
    }
    if (delay_ms != 0) {
        cwist_jq__memory_to_delayed(own, *job, cwist_jq__add_ms(now, delay_ms));
    } else {
        cwist_jq__memory_to_ready(own, *job, now);
    }
    tell_id(stored, *job);
    *job = NULL;
    return CWIST_SUCCESS;
}

/* Copies of the items; those that are stored are taken out. */
typedef struct batch {
    const cwist_job_item_t *items;
    size_t count;
    cwist_job_stored_t *stored;
    cwist_jq__memory_job **jobs;
} batch;

static int copy_items(batch *all)
{
    for (size_t i = 0; i < all->count; i++) {
        all->jobs[i] = cwist_jq__memory_job_new(&all->items[i]);
        if (all->jobs[i] == NULL) {
            all->stored[i].code = CWIST_ERROR_NOMEM;
            return cwist_jq__no_memory();
        }
    }
    return CWIST_SUCCESS;
}

static void drop_copies(const batch *all)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->jobs[i] != NULL) {
            cwist_jq__memory_job_free(all->jobs[i]);
        }
    }
}

/* Stores each for itself. A full queue still tells duplicates. */
static int store_each(const cwist_jq__queue *queue, const batch *all, uint64_t now)
{
    cwist_jq__failure failure;

    failure.code = CWIST_SUCCESS;
    for (size_t i = 0; i < all->count; i++) {
        cwist_job_stored_t *stored = &all->stored[i];
        stored->code = store_one(queue, &all->jobs[i], all->items[i].delay_ms, now, stored);
        if (stored->code != CWIST_SUCCESS) {
            cwist_jq__failure_note(&failure, i, stored->code);
        }
    }
    return cwist_jq__failure_tell(&failure);
}

static void undo(cwist_jq__memory_queue *own, cwist_job_stored_t *stored)
{
    if (stored->code == CWIST_SUCCESS && !stored->duplicate) {
        cwist_jq__memory_job *job = cwist_jq__memory_find(own, own->last_id--);
        cwist_jq__memory_take_out(own, job);
        cwist_jq__memory_forget(own, job);
    }
}

/* Stores in order, and takes all back when one cannot be stored. */
static int store_all(const cwist_jq__queue *queue, const batch *all, uint64_t now)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_of(queue)->queue;
    int status = CWIST_SUCCESS;
    size_t done = 0;

    for (; done < all->count && status == CWIST_SUCCESS; done++) {
        cwist_job_stored_t *stored = &all->stored[done];
        status = store_one(queue, &all->jobs[done], all->items[done].delay_ms, now, stored);
        stored->code = status;
    }
    if (status == CWIST_SUCCESS) {
        return CWIST_SUCCESS;
    }
    while (done-- > 0) {
        undo(own, &all->stored[done]);
    }
    for (size_t i = 0; i < all->count; i++) {
        all->stored[i] = (cwist_job_stored_t){.code = status};
    }
    return status;
}

static int store_batch(cwist_jq__queue *queue, batch *all, bool all_or_none)
{
    int status = copy_items(all);

    if (status == CWIST_SUCCESS) {
        cwist_jq__memory_queue *own = cwist_jq__memory_enter(queue);
        uint64_t now = cwist_jq__now();
        cwist_jq__memory_recover(own, now); /* what was due before goes before */
        status = all_or_none ? store_all(queue, all, now) : store_each(queue, all, now);
        cwist_jq__memory_leave(queue);
    }
    drop_copies(all);
    return status;
}

int cwist_jq__memory_enqueue(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                             bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored)
{
    cwist_jq__memory_job *one = NULL;
    batch all = {items, count, stored, &one};

    (void)deadline; /* nothing is waited for */
    if (count > 1) {
        all.jobs = cwist_jq__calloc(count, sizeof(cwist_jq__memory_job *));
        if (all.jobs == NULL) {
            return stored[0].code = cwist_jq__no_memory();
        }
    }
    int status = store_batch(queue, &all, all_or_none);
    if (count > 1) {
        cwist_jq__free(all.jobs);
    }
    return status;
}
