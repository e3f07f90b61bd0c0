/* Jobs on their way to the server, one or many. */
#include <string.h>

#include "core/api.h"
#include "core/backend.h"
#include "core/queue.h"
#include "core/settle.h"

static int check_item(cwist_jq__queue *queue, const cwist_job_item_t *item)
{
    if (item->payload == NULL && item->len != 0) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "payload is NULL with a length of %zu; allowed: NULL with 0",
                              item->len);
    }
    int status = CWIST_SUCCESS;
    if (item->type != NULL) {
        status = cwist_jq__check_type(item->type, strlen(item->type));
    }
    return status == CWIST_SUCCESS ? queue->conn->ops->check_size(queue, item) : status;
}

/* Marks every item as not sent, and the bad one, if there is one, with what is wrong with it. */
static int check_items(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                       cwist_job_stored_t *stored)
{
    int status = CWIST_SUCCESS;

    for (size_t i = 0; i < count; i++) {
        stored[i].code = CWIST_ERROR_NOT_SENT;
        stored[i].id[0] = '\0';
    }
    for (size_t i = 0; i < count && status == CWIST_SUCCESS; i++) {
        status = check_item(queue, &items[i]);
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

static int enqueue_items(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                         bool all_or_none, cwist_job_stored_t *stored)
{
    int status = check_items(queue, items, count, stored);

    if (status == CWIST_SUCCESS) {
        status = queue->conn->ops->enqueue(queue, items, count, all_or_none,
                                           cwist_jq__operation_deadline(queue), stored);
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

cwist_error_t cwist_job_queue_enqueue_id(cwist_job_queue_t *handle, const void *payload, size_t len,
                                         const char *type, char *id)
{
    cwist_job_item_t item = {payload, len, type};
    cwist_job_stored_t stored = {CWIST_ERROR_NOT_SENT, ""};
    cwist_jq__queue *queue = NULL;
    int status = cwist_jq__begin(&queue, handle, "enqueue");

    if (status == CWIST_SUCCESS) {
        status = enqueue_items(queue, &item, 1, false, &stored);
    }
    if (id != NULL) {
        memcpy(id, stored.id, sizeof stored.id);
    }
    return cwist_jq__end(queue, "enqueue", status);
}

cwist_error_t cwist_job_queue_enqueue(cwist_job_queue_t *handle, const void *payload, size_t len,
                                      const char *type)
{
    return cwist_job_queue_enqueue_id(handle, payload, len, type, NULL);
}
