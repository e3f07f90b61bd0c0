/* Workers: who has a job, who let one lapse, who waits. They go with the last that knows them. */
#include <string.h>

#include "memory/memory.h"

cwist_jq__memory_worker *cwist_jq__memory_worker_get(cwist_jq__memory_queue *queue,
                                                     const char *name)
{
    size_t size = strlen(name) + 1;
    cwist_jq__memory_worker *worker = queue->workers;

    while (worker != NULL && strcmp(worker->name, name) != 0) {
        worker = worker->next;
    }
    if (worker == NULL) {
        worker = cwist_jq__calloc(1, sizeof *worker + size);
        if (worker == NULL) {
            return NULL;
        }
        memcpy(worker->name, name, size);
        worker->next = queue->workers;
        queue->workers = worker;
    }
    worker->references++;
    return worker;
}

void cwist_jq__memory_worker_ref(cwist_jq__memory_worker *worker)
{
    worker->references++;
}

void cwist_jq__memory_worker_unref(cwist_jq__memory_queue *queue, cwist_jq__memory_worker *worker)
{
    if (worker == NULL || --worker->references != 0) {
        return;
    }
    cwist_jq__memory_worker **at = &queue->workers;
    while (*at != worker) {
        at = &(*at)->next;
    }
    *at = worker->next;
    cwist_jq__free(worker);
}
