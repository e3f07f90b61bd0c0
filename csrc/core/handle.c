/*
 * The table of live handles.
 *
 * Layout of a handle, from the low bits: kind (3), index, generation, epoch. The epoch counts
 * forks: a child starts an empty table of its own, because the parent's lock may be held for ever
 * there and the parent's sockets and threads are not the child's to use.
 */
#include <string.h>

#include "core/api.h"
#include "platform/thread.h"

#if UINTPTR_MAX > 0xFFFFFFFFu
#define INDEX_BITS 28
#define GENERATION_BITS 25
#define EPOCH_BITS 8
#else
#define INDEX_BITS 16
#define GENERATION_BITS 10
#define EPOCH_BITS 3
#endif
#define KIND_BITS 3

#define MASK(bits) (((uintptr_t)1 << (bits)) - 1)

typedef struct slot {
    cwist_jq__object *object; /* NULL: free */
    uint32_t generation;
    uint32_t next_free; /* index + 1; 0: end of the list */
} slot;

static struct {
    cwist_jq__mutex lock;
    slot *slots;
    uint32_t size;
    uint32_t first_free;
    uint64_t live;
    uintptr_t epoch;
    slot *inherited; /* a forked child keeps its parent's slots in sight, and never uses them */
} table = {.lock = CWIST_JQ_MUTEX_INIT};

/* The process that the table belongs to. */
static _Atomic uint64_t table_owner;

/* Gives a forked child a table of its own. The parent's memory is left alone on purpose. */
static void start_anew(void)
{
    cwist_jq__mutex_init(&table.lock);
    table.inherited = table.slots;
    table.slots = NULL;
    table.size = table.first_free = 0;
    table.live = 0;
    table.epoch = (table.epoch + 1) & MASK(EPOCH_BITS);
}

static void enter_process(void)
{
    cwist_jq__enter_process(&table_owner, start_anew);
}

static uintptr_t encode(uint32_t index, uint32_t generation, cwist_jq__kind kind)
{
    return (uintptr_t)kind | (uintptr_t)index << KIND_BITS |
           (uintptr_t)generation << (KIND_BITS + INDEX_BITS) |
           table.epoch << (KIND_BITS + INDEX_BITS + GENERATION_BITS);
}

static bool grow(void)
{
    uint32_t size = table.size != 0 ? table.size * 2 : 64;
    if (size > MASK(INDEX_BITS)) {
        return false;
    }
    slot *slots = cwist_jq__realloc(table.slots, size * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (uint32_t i = table.size; i < size; i++) {
        slots[i] = (slot){NULL, 0, i + 1 < size ? i + 2 : 0};
    }
    table.first_free = table.size + 1;
    table.slots = slots;
    table.size = size;
    return true;
}

void *cwist_jq__handle_new(void *object)
{
    uintptr_t handle = 0;

    enter_process();
    cwist_jq__lock(&table.lock);
    if (table.first_free != 0 || grow()) {
        uint32_t index = table.first_free - 1;
        slot *place = &table.slots[index];
        table.first_free = place->next_free;
        place->object = object;
        table.live++;
        handle = encode(index, place->generation, place->object->kind);
    }
    cwist_jq__unlock(&table.lock);
    return (void *)handle; /* a number in a pointer's clothes; nobody follows it */
}

/* The slot of a live handle, or NULL. Needs the lock. */
static slot *find(uintptr_t handle)
{
    uintptr_t index = handle >> KIND_BITS & MASK(INDEX_BITS);
    if (index >= table.size || table.slots[index].object == NULL) {
        return NULL;
    }
    slot *place = &table.slots[index];
    return encode((uint32_t)index, place->generation, place->object->kind) == handle ? place : NULL;
}

static int explain(uintptr_t handle, cwist_jq__kind kind, const char *what)
{
    if (handle == 0) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s is NULL", what);
    }
    if ((handle & MASK(KIND_BITS)) != (uintptr_t)kind) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s is a handle of another kind", what);
    }
    if (handle >> (KIND_BITS + INDEX_BITS + GENERATION_BITS) != table.epoch) {
        return cwist_jq__fail(CWIST_ERROR_CLOSED,
                              "the %s was opened in another process; open one after the fork",
                              what);
    }
    return cwist_jq__fail(CWIST_ERROR_CLOSED, "the %s is closed", what);
}

int cwist_jq__handle_get(void **object, const void *handle, cwist_jq__kind kind, const char *what)
{
    *object = NULL;
    enter_process();
    cwist_jq__lock(&table.lock);
    slot *place = find((uintptr_t)handle);
    if (place != NULL && place->object->kind == kind) {
        *object = place->object;
        cwist_jq__ref(*object);
    }
    cwist_jq__unlock(&table.lock);
    return *object != NULL ? CWIST_SUCCESS : explain((uintptr_t)handle, kind, what);
}

void *cwist_jq__handle_peek(const void *handle, cwist_jq__kind kind)
{
    void *object = NULL;

    enter_process();
    cwist_jq__lock(&table.lock);
    slot *place = find((uintptr_t)handle);
    if (place != NULL && place->object->kind == kind) {
        object = place->object;
    }
    cwist_jq__unlock(&table.lock);
    return object;
}

int cwist_jq__handle_take(void **object, const void *handle, cwist_jq__kind kind, const char *what)
{
    *object = NULL;
    enter_process();
    cwist_jq__lock(&table.lock);
    slot *place = find((uintptr_t)handle);
    if (place != NULL && place->object->kind == kind) {
        *object = place->object;
        place->object = NULL;
        place->generation = (place->generation + 1) & (uint32_t)MASK(GENERATION_BITS);
        place->next_free = table.first_free;
        table.first_free = (uint32_t)(place - table.slots) + 1;
        table.live--;
    }
    cwist_jq__unlock(&table.lock);
    return *object != NULL ? CWIST_SUCCESS : explain((uintptr_t)handle, kind, what);
}

uint64_t cwist_job_live_handles(void)
{
    enter_process();
    cwist_jq__lock(&table.lock);
    uint64_t live = table.live;
    cwist_jq__unlock(&table.lock);
    return live;
}
