/* Jobs of a store, and lists of them. */
#include "memory/memory.h"

cwist_jq__memory_job *cwist_jq__memory_job_new(const cwist_job_item_t *item)
{
    cwist_jq__memory_job *job = cwist_jq__calloc(1, sizeof *job);

    if (job != NULL) {
        job->body = cwist_jq__memory_body_new(item);
    }
    if (job == NULL || job->body == NULL) {
        cwist_jq__free(job);
        return NULL;
    }
    return job;
}

void cwist_jq__memory_job_free(cwist_jq__memory_job *job)
{
    cwist_jq__memory_body_unref(job->body);
    cwist_jq__free(job);
}

void cwist_jq__memory_list_add(cwist_jq__memory_list *list, cwist_jq__memory_job *job)
{
    job->before = list->last;
    job->next = NULL;
    if (list->last != NULL) {
        list->last->next = job;
    } else {
        list->first = job;
    }
    list->last = job;
    list->count++;
}

void cwist_jq__memory_list_remove(cwist_jq__memory_list *list, cwist_jq__memory_job *job)
{
    if (job->before != NULL) {
        job->before->next = job->next;
    } else {
        list->first = job->next;
    }
    if (job->next != NULL) {
        job->next->before = job->before;
    } else {
        list->last = job->before;
    }
    job->next = job->before = NULL;
    list->count--;
}
