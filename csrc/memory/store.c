/* Stores: those with a name are shared by the connections of this process that ask for it. */
#include <string.h>

#include "memory/memory.h"
#include "platform/clock.h"

static struct {
    cwist_jq__mutex lock;
    cwist_jq__memory_store *first;
    cwist_jq__memory_store *inherited; /* a forked child keeps its parent's in sight, unused */
} named = {.lock = CWIST_JQ_MUTEX_INIT};

static _Atomic uint64_t named_owner;

/* A forked child has no handle to its parent's stores, and a store of its own for each name. */
static void start_anew(void)
{
    cwist_jq__mutex_init(&named.lock);
    named.inherited = named.first;
    named.first = NULL;
}

static cwist_jq__memory_store *new_store(const char *name)
{
    cwist_jq__memory_store *store = cwist_jq__calloc(1, sizeof *store);

    if (store == NULL) {
        return NULL;
    }
    store->name = name != NULL ? cwist_jq__strdup(name) : NULL;
    if (name != NULL && store->name == NULL) {
        cwist_jq__free(store);
        return NULL;
    }
    store->references = 1;
    store->began = cwist_jq__now();
    store->began_ms = cwist_jq__wall_ms();
    cwist_jq__mutex_init(&store->lock);
    return store;
}

cwist_jq__memory_store *cwist_jq__memory_store_get(const char *name)
{
    if (name == NULL) {
        return new_store(NULL);
    }
    cwist_jq__enter_process(&named_owner, start_anew);
    cwist_jq__lock(&named.lock);
    cwist_jq__memory_store *store = named.first;
    while (store != NULL && strcmp(store->name, name) != 0) {
        store = store->next;
    }
    if (store != NULL) {
        store->references++;
    } else {
        store = new_store(name);
        if (store != NULL) {
            store->next = named.first;
            named.first = store;
        }
    }
    cwist_jq__unlock(&named.lock);
    return store;
}

static void free_list(cwist_jq__memory_list *list)
{
    while (list->first != NULL) {
        cwist_jq__memory_job *job = list->first;
        cwist_jq__memory_list_remove(list, job);
        cwist_jq__memory_job_free(job);
    }
}

static void free_queue(cwist_jq__memory_queue *queue)
{
    free_list(&queue->ready);
    free_list(&queue->claimed);
    for (size_t i = 0; i < queue->delayed.count; i++) {
        cwist_jq__memory_job_free(queue->delayed.at[i]);
    }
    cwist_jq__free(queue->delayed.at);
    for (size_t i = queue->dead.begin; i < queue->dead.end; i++) {
        if (queue->dead.at[i].job != NULL) {
            cwist_jq__free(queue->dead.at[i].reason);
            cwist_jq__memory_job_free(queue->dead.at[i].job);
        }
    }
    cwist_jq__free(queue->dead.at);
    while (queue->workers != NULL) {
        cwist_jq__memory_worker *worker = queue->workers;
        queue->workers = worker->next;
        cwist_jq__free(worker);
    }
    cwist_jq__memory_table_clear(&queue->ids);
    cwist_jq__memory_table_clear(&queue->keys);
    cwist_jq__condition_destroy(&queue->changed);
    cwist_jq__free(queue->name);
    cwist_jq__free(queue);
}

static void free_store(cwist_jq__memory_store *store)
{
    while (store->queues != NULL) {
        cwist_jq__memory_queue *queue = store->queues;
        store->queues = queue->next;
        free_queue(queue);
    }
    cwist_jq__mutex_destroy(&store->lock);
    cwist_jq__free(store->name);
    cwist_jq__free(store);
}

/* True for the last one; then nobody finds the store any more. */
static bool let_go(cwist_jq__memory_store *store)
{
    cwist_jq__memory_store **at = &named.first;

    cwist_jq__lock(&named.lock);
    bool last = --store->references == 0;
    if (last) {
        while (*at != store) {
            at = &(*at)->next;
        }
        *at = store->next;
    }
    cwist_jq__unlock(&named.lock);
    return last;
}

void cwist_jq__memory_store_give(cwist_jq__memory_store *store)
{
    if (store->name == NULL || let_go(store)) {
        free_store(store);
    }
}

uint64_t cwist_jq__memory_time(const cwist_jq__memory_store *store, uint64_t now)
{
    return store->began_ms + (now - store->began) / CWIST_JQ_MS;
}

cwist_jq__memory_queue *cwist_jq__memory_queue_get(cwist_jq__memory_store *store, const char *name)
{
    cwist_jq__memory_queue *queue = store->queues;

    while (queue != NULL && strcmp(queue->name, name) != 0) {
        queue = queue->next;
    }
    if (queue != NULL) {
        return queue;
    }
    queue = cwist_jq__calloc(1, sizeof *queue);
    char *copy = cwist_jq__strdup(name);
    if (queue == NULL || copy == NULL) {
        cwist_jq__free(queue);
        cwist_jq__free(copy);
        return NULL;
    }
    queue->name = copy;
    cwist_jq__condition_init(&queue->changed);
    queue->next = store->queues;
    store->queues = queue;
    return queue;
}
