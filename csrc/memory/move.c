/* The moves of a job from state to state, and those that time makes. */
#include "memory/memory.h"

void cwist_jq__memory_to_ready(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job,
                               uint64_t since)
{
    job->state = CWIST_JQ_MEMORY_READY;
    job->moment = since;
    cwist_jq__memory_list_add(&queue->ready, job);
}

void cwist_jq__memory_to_delayed(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job,
                                 uint64_t due)
{
    job->state = CWIST_JQ_MEMORY_DELAYED;
    job->moment = due;
    cwist_jq__memory_heap_add(&queue->delayed, job);
}

void cwist_jq__memory_to_claimed(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job,
                                 cwist_jq__memory_worker *worker, uint64_t now)
{
    job->state = CWIST_JQ_MEMORY_CLAIMED;
    job->moment = now;
    job->worker = worker;
    cwist_jq__memory_worker_ref(worker);
    worker->held++;
    cwist_jq__memory_list_add(&queue->claimed, job);
}

static void leave_letters(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job)
{
    cwist_jq__memory_letter *letter = cwist_jq__memory_letters_find(&queue->dead, job->place);

    cwist_jq__memory_worker_unref(queue, letter->consumer);
    cwist_jq__free(letter->reason);
    cwist_jq__memory_letters_remove(&queue->dead, letter);
}

void cwist_jq__memory_take_out(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job)
{
    switch (job->state) {
    case CWIST_JQ_MEMORY_READY:
        cwist_jq__memory_list_remove(&queue->ready, job);
        break;
    case CWIST_JQ_MEMORY_DELAYED:
        cwist_jq__memory_heap_remove(&queue->delayed, job);
        break;
    case CWIST_JQ_MEMORY_CLAIMED:
        cwist_jq__memory_list_remove(&queue->claimed, job);
        job->worker->held--;
        cwist_jq__memory_worker_unref(queue, job->worker);
        job->worker = NULL;
        break;
    case CWIST_JQ_MEMORY_DEAD:
        leave_letters(queue, job);
        break;
    }
}

void cwist_jq__memory_free_key(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job)
{
    if (job->has_key) {
        cwist_jq__memory_table_remove(&queue->keys, &job->by_key);
        job->has_key = false;
    }
}

void cwist_jq__memory_forget(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job)
{
    cwist_jq__memory_free_key(queue, job);
    cwist_jq__memory_table_remove(&queue->ids, &job->by_id);
    cwist_jq__memory_worker_unref(queue, job->lapsed_by);
    cwist_jq__memory_job_free(job);
}

/* ---- what time makes ---- */

static uint64_t due_next(const cwist_jq__memory_queue *queue)
{
    return queue->delayed.count != 0 ? queue->delayed.at[0]->moment : CWIST_JQ_NEVER;
}

static uint64_t lapse_next(const cwist_jq__memory_queue *queue)
{
    const cwist_jq__memory_job *first = queue->claimed.first;

    return first != NULL ? cwist_jq__add_ms(first->moment, queue->visibility_ms) : CWIST_JQ_NEVER;
}

uint64_t cwist_jq__memory_next_moment(const cwist_jq__memory_queue *queue)
{
    return cwist_jq__earlier(due_next(queue), lapse_next(queue));
}

/* The lease of the job that was claimed first ran out. */
static void lapse(cwist_jq__memory_queue *queue, uint64_t when)
{
    cwist_jq__memory_job *job = queue->claimed.first;

    cwist_jq__memory_worker_ref(job->worker);
    cwist_jq__memory_worker_unref(queue, job->lapsed_by);
    job->lapsed_by = job->worker;
    cwist_jq__memory_take_out(queue, job);
    cwist_jq__memory_to_ready(queue, job, when);
}

void cwist_jq__memory_recover(cwist_jq__memory_queue *queue, uint64_t now)
{
    for (;;) {
        uint64_t due = due_next(queue);
        uint64_t lapses = lapse_next(queue);
        if (due > now && lapses > now) {
            return;
        }
        if (lapses < due) {
            lapse(queue, lapses);
        } else {
            cwist_jq__memory_job *job = queue->delayed.at[0];
            cwist_jq__memory_take_out(queue, job);
            cwist_jq__memory_to_ready(queue, job, due);
        }
    }
}

uint64_t cwist_jq__memory_live(const cwist_jq__memory_queue *queue)
{
    return (uint64_t)queue->ready.count + queue->delayed.count + queue->claimed.count;
}
