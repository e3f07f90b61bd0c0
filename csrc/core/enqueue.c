/* Jobs on their way to the server, one or many. */
#include <string.h>

#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"
#include "core/settle.h"

/* Marks every item as not sent, and the bad one, if there is one, with what is wrong with it. */
static int check_items(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                       cwist_job_stored_t *stored)
{
    int status = CWIST_SUCCESS;

    for (size_t i = 0; i < count; i++) {
        stored[i].code = CWIST_ERROR_NOT_SENT;
        stored[i].duplicate = false;
        stored[i].id[0] = '\0';
    }
    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        status = cwist_jq__check_item(&items[i]);
        if (status == CWIST_SUCCESS) {
            status = queue->conn->ops->check_size(queue, &items[i]);
        }
        if (status != CWIST_SUCCESS) {
            stored[i].code = status;
        }
    }
    return status;
}

/* Names the item, among several, whose code is told. */
static void name_item(const cwist_job_stored_t *stored, size_t count, int status)
{
    size_t told = 0;

    while (told < count && stored[told].code != status) {
        told++;
    }
    if (count > 1 && told < count) {
        cwist_jq__error_prefix("items[%zu]: ", told);
    }
}

/* Duplicates are no new jobs. */
static void count_stored(cwist_jq__queue *queue, const cwist_job_stored_t *stored, size_t count)
{
    uint64_t fresh = 0;

    for (size_t i = 0; i < count; i++) {
        fresh += stored[i].code == CWIST_SUCCESS && !stored[i].duplicate ? 1 : 0;
    }
    atomic_fetch_add_explicit(&queue->counters.enqueued, fresh, memory_order_relaxed);
}

static int enqueue_items(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                         bool all_or_none, cwist_job_stored_t *stored)
{
    int status = check_items(queue, items, count, stored);

    if (status == CWIST_SUCCESS) {
        status = queue->conn->ops->enqueue(queue, items, count, all_or_none,
                                           cwist_jq__operation_deadline(queue), stored);
        count_stored(queue, stored, count);
    }
    if (status != CWIST_SUCCESS) {
        name_item(stored, count, status);
    }
    return status;
}

static cwist_error_t enqueue_batch(cwist_job_queue_t *handle, const cwist_job_item_t *items,
                                   size_t count, bool all_or_none, cwist_job_stored_t *stored)
{
    cwist_jq__queue *queue = NULL;
    cwist_job_stored_t *own = NULL;
    int status = cwist_jq__begin(&queue, handle, "enqueue");

    if (status == CWIST_SUCCESS) {
        status = cwist_jq__check_count(count, items, "items");
    }
    if (status == CWIST_SUCCESS && stored == NULL) {
        stored = own = cwist_jq__calloc(count, sizeof *own);
        status = own != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
    }
    if (status == CWIST_SUCCESS) {
        status = enqueue_items(queue, items, count, all_or_none, stored);
    }
    cwist_jq__free(own);
    return cwist_jq__end(queue, "enqueue", status);
}

cwist_error_t cwist_job_queue_enqueue_many(cwist_job_queue_t *queue, const cwist_job_item_t *items,
                                           size_t count, cwist_job_stored_t *stored)
{
    return enqueue_batch(queue, items, count, false, stored);
}

cwist_error_t cwist_job_queue_enqueue_all(cwist_job_queue_t *queue, const cwist_job_item_t *items,
                                          size_t count, cwist_job_stored_t *stored)
{
    return enqueue_batch(queue, items, count, true, stored);
}

cwist_error_t cwist_job_queue_enqueue_item(cwist_job_queue_t *handle, const cwist_job_item_t *item,
                                           cwist_job_stored_t *stored)
{
    cwist_job_stored_t own;
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__begin(&queue, handle, "enqueue");

    stored = stored != NULL ? stored : &own;
    *stored = (cwist_job_stored_t){.code = CWIST_ERROR_NOT_SENT};
    if (status == CWIST_SUCCESS && item == NULL) {
        status = cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "item is NULL");
    }
    if (status == CWIST_SUCCESS) {
        status = enqueue_items(queue, item, 1, false, stored);
    }
    return cwist_jq__end(queue, "enqueue", status);
}

cwist_error_t cwist_job_queue_enqueue_id(cwist_job_queue_t *queue, const void *payload, size_t len,
                                         const char *type, char *id)
{
    cwist_job_item_t item = {.payload = payload, .len = len, .type = type};
    cwist_job_stored_t stored;
    cwist_error_t error = cwist_job_queue_enqueue_item(queue, &item, &stored);

    if (id != NULL) {
        memcpy(id, stored.id, sizeof stored.id);
    }
    return error;
}

cwist_error_t cwist_job_queue_enqueue(cwist_job_queue_t *queue, const void *payload, size_t len,
                                      const char *type)
{
    return cwist_job_queue_enqueue_id(queue, payload, len, type, NULL);
}
