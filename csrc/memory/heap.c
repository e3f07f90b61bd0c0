/* A heap of the delayed jobs: none is due before the one above it. */
#include "memory/memory.h"

#define FIRST_ROOM 64

/* Those that are due at the same moment go in the order in which they were enqueued. */
static bool goes_before(const cwist_jq__memory_job *a, const cwist_jq__memory_job *b)
{
    return a->moment != b->moment ? a->moment < b->moment : a->by_id.hash < b->by_id.hash;
}

static void put(cwist_jq__memory_heap *heap, size_t place, cwist_jq__memory_job *job)
{
    heap->at[place] = job;
    job->place = place;
}

/* Moves the job up from a free place to where it belongs. */
static void rise(cwist_jq__memory_heap *heap, size_t place, cwist_jq__memory_job *job)
{
    while (place > 0 && goes_before(job, heap->at[(place - 1) / 2])) {
        put(heap, place, heap->at[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(heap, place, job);
}

/* Moves the job down from a free place to where it belongs. */
static void sink(cwist_jq__memory_heap *heap, size_t place, cwist_jq__memory_job *job)
{
    for (size_t below = 2 * place + 1; below < heap->count; below = 2 * place + 1) {
        if (below + 1 < heap->count && goes_before(heap->at[below + 1], heap->at[below])) {
            below++;
        }
        if (!goes_before(heap->at[below], job)) {
            break;
        }
        put(heap, place, heap->at[below]);
        place = below;
    }
    put(heap, place, job);
}

bool cwist_jq__memory_heap_reserve(cwist_jq__memory_heap *heap)
{
    if (heap->count < heap->room) {
        return true;
    }
    size_t room = heap->room != 0 ? heap->room * 2 : FIRST_ROOM;
    cwist_jq__memory_job **at = cwist_jq__realloc(heap->at, room * sizeof *at);
    if (at == NULL) {
        return false;
    }
    heap->at = at;
    heap->room = room;
    return true;
}

void cwist_jq__memory_heap_add(cwist_jq__memory_heap *heap, cwist_jq__memory_job *job)
{
    rise(heap, heap->count++, job);
}

void cwist_jq__memory_heap_remove(cwist_jq__memory_heap *heap, cwist_jq__memory_job *job)
{
    size_t place = (size_t)job->place;
    cwist_jq__memory_job *last = heap->at[--heap->count];

    if (last == job) {
        return;
    }
    if (place > 0 && goes_before(last, heap->at[(place - 1) / 2])) {
        rise(heap, place, last);
    } else {
        sink(heap, place, last);
    }
}
