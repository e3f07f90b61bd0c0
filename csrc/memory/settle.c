/* The ends of a delivery. Its number is the fence: the job must still be claimed under it. */
#include <string.h>

#include "memory/memory.h"
#include "platform/clock.h"

/* What becomes of jobs. */
typedef struct ending {
    int (*end)(const struct ending *ending, size_t item, cwist_jq__memory_job *held);
    cwist_jq__queue *queue;
    cwist_jq__job *const *jobs;
    const uint64_t *delays_ms; /* NULL: delay_ms for all */
    uint64_t delay_ms;
    cwist_jq__cause cause;
    const char *text;
    uint64_t now;
} ending;

/* The job of a delivery; NULL when it was given away. */
static cwist_jq__memory_job *held_by(const cwist_jq__memory_queue *own, const cwist_jq__job *job)
{
    uint64_t id = 0;
    uint64_t delivery = 0;
    bool read = cwist_jq__memory_number(job->id, strlen(job->id), &id) &&
                cwist_jq__memory_number(job->receipt, strlen(job->receipt), &delivery);
    cwist_jq__memory_job *found = read ? cwist_jq__memory_find(own, id) : NULL;
    bool ours =
        found != NULL && found->state == CWIST_JQ_MEMORY_CLAIMED && found->delivery == delivery;

    return ours ? found : NULL;
}

static int end_each(ending *all, size_t count, int *codes)
{
    const cwist_jq__memory_queue *own = cwist_jq__memory_enter(all->queue);
    cwist_jq__failure failure;

    all->now = cwist_jq__now();
    failure.code = CWIST_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        cwist_jq__memory_job *held = held_by(own, all->jobs[i]);
        codes[i] = held != NULL
                       ? all->end(all, i, held)
                       : cwist_jq__fail(CWIST_ERROR_LEASE_LOST,
                                        "job %s was given away: its lease ended, or it was removed",
                                        all->jobs[i]->id);
        if (codes[i] != CWIST_SUCCESS) {
            cwist_jq__failure_note(&failure, i, codes[i]);
        }
    }
    cwist_jq__memory_leave(all->queue);
    return cwist_jq__failure_tell(&failure);
}

static int end_ack(const ending *all, size_t item, cwist_jq__memory_job *held)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_of(all->queue)->queue;

    (void)item;
    cwist_jq__memory_take_out(own, held);
    cwist_jq__memory_forget(own, held);
    return CWIST_SUCCESS;
}

int cwist_jq__memory_ack(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                         uint64_t deadline, int *codes)
{
    ending all = {.end = end_ack, .queue = queue, .jobs = jobs};

    (void)deadline;
    return end_each(&all, count, codes);
}

/* Makes a claimed job ready, now or later. */
static int give_back(const ending *all, size_t item, cwist_jq__memory_job *held)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_of(all->queue)->queue;
    uint64_t delay_ms = all->delays_ms != NULL ? all->delays_ms[item] : all->delay_ms;

    if (delay_ms != 0 && !cwist_jq__memory_heap_reserve(&own->delayed)) {
        return cwist_jq__no_memory();
    }
    cwist_jq__memory_take_out(own, held);
    if (delay_ms != 0) {
        cwist_jq__memory_to_delayed(own, held, cwist_jq__add_ms(all->now, delay_ms));
    } else {
        cwist_jq__memory_to_ready(own, held, all->now);
    }
    return CWIST_SUCCESS;
}

static int end_retry(const ending *all, size_t item, cwist_jq__memory_job *held)
{
    int status = give_back(all, item, held);

    if (status == CWIST_SUCCESS) {
        cwist_jq__memory_worker_unref(cwist_jq__memory_of(all->queue)->queue, held->lapsed_by);
        held->lapsed_by = NULL;
    }
    return status;
}

int cwist_jq__memory_retry(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                           const uint64_t *delays_ms, uint64_t deadline, int *codes)
{
    ending all = {.end = end_retry, .queue = queue, .jobs = jobs, .delays_ms = delays_ms};

    (void)deadline;
    return end_each(&all, count, codes);
}

static int end_release(const ending *all, size_t item, cwist_jq__memory_job *held)
{
    int status = give_back(all, item, held);

    if (status == CWIST_SUCCESS) {
        held->attempts--;
    }
    return status;
}

int cwist_jq__memory_release(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                             uint64_t delay_ms, uint64_t deadline, int *codes)
{
    ending all = {.end = end_release, .queue = queue, .jobs = jobs, .delay_ms = delay_ms};

    (void)deadline;
    return end_each(&all, count, codes);
}

static int end_bury(const ending *all, size_t item, cwist_jq__memory_job *held)
{
    const cwist_jq__memory_handle *handle = cwist_jq__memory_of(all->queue);
    cwist_jq__memory_queue *own = handle->queue;
    bool lapsed = all->cause == CWIST_JQ_CAUSE_LEASE_EXPIRED && held->lapsed_by != NULL;
    bool told = all->text != NULL && *all->text != '\0';
    char *reason = told ? cwist_jq__strdup(all->text) : NULL;

    if ((told && reason == NULL) || !cwist_jq__memory_letters_reserve(&own->dead)) {
        cwist_jq__free(reason);
        return cwist_jq__no_memory();
    }
    cwist_jq__memory_letter *letter = cwist_jq__memory_letters_add(&own->dead);
    letter->job = held;
    letter->cause = all->cause;
    letter->reason = reason;
    letter->died_ms = cwist_jq__memory_time(handle->store, all->now);
    letter->consumer = lapsed ? held->lapsed_by : handle->worker;
    cwist_jq__memory_worker_ref(letter->consumer);

    cwist_jq__memory_take_out(own, held);
    cwist_jq__memory_free_key(own, held);
    held->state = CWIST_JQ_MEMORY_DEAD;
    held->place = letter->number;
    held->attempts = all->jobs[item]->attempts;
    return CWIST_SUCCESS;
}

int cwist_jq__memory_bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                          cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes)
{
    ending all = {.end = end_bury, .queue = queue, .jobs = jobs, .cause = cause, .text = text};

    (void)deadline;
    return end_each(&all, count, codes);
}

static int end_extend(const ending *all, size_t item, cwist_jq__memory_job *held)
{
    cwist_jq__memory_queue *own = cwist_jq__memory_of(all->queue)->queue;
    cwist_jq__job *job = all->jobs[item];

    cwist_jq__memory_list_remove(&own->claimed, held);
    held->moment = all->now;
    cwist_jq__memory_list_add(&own->claimed, held);
    atomic_store(&job->lease_starts, all->now);
    atomic_store(&job->lease_ends, cwist_jq__add_ms(all->now, cwist_jq__lease_ms(all->queue)));
    return CWIST_SUCCESS;
}

int cwist_jq__memory_extend(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                            uint64_t deadline, int *codes)
{
    ending all = {.end = end_extend, .queue = queue, .jobs = jobs};

    (void)deadline;
    return end_each(&all, count, codes);
}
