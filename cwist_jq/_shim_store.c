/* Jobs on their way to the server, one or many. */

static int cwist_py_enqueue(cwist_job_queue_t *queue, const void *payload, size_t len,
                            const char *type, char *id)
{
    return tell(code_of(cwist_job_queue_enqueue_id(queue, payload, len, type, id)));
}

/* Puts the ids of stored jobs together in their own memory: lines, and a NUL. */
static void join_ids(cwist_job_stored_t *stored, size_t count)
{
    char *at = (char *)stored;

    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(stored[i].id);
        memmove(at, stored[i].id, len); /* at stays behind the id that is read */
        at += len;
        *at++ = i + 1 < count ? '\n' : '\0';
    }
}

/* On success what is in stored is a text, the ids in lines; else the results as C told them. */
static int store(cwist_job_queue_t *queue, const cwist_job_item_t *items,
                 cwist_job_stored_t *stored, size_t count, bool whole)
{
    for (size_t i = 0; i < count; i++) { /* a queue that is closed tells no results */
        stored[i].code = CWIST_ERROR_NOT_SENT;
        stored[i].id[0] = '\0';
    }
    int code = code_of(whole ? cwist_job_queue_enqueue_all(queue, items, count, stored)
                             : cwist_job_queue_enqueue_many(queue, items, count, stored));
    if (code == CWIST_SUCCESS) {
        join_ids(stored, count);
    }
    return tell(code);
}

/* Stores jobs whose payloads stand one behind the other. items and stored are room for count. */
static int cwist_py_enqueue_joined(cwist_job_queue_t *queue, cwist_job_item_t *items,
                                   cwist_job_stored_t *stored, size_t count, const char *payloads,
                                   const size_t *sizes, const char *type, bool whole)
{
    for (size_t i = 0; i < count; i++) {
        items[i] = (cwist_job_item_t){.payload = payloads, .len = sizes[i], .type = type};
        payloads += sizes[i];
    }
    return store(queue, items, stored, count, whole);
}

/* Stores jobs whose payloads and types stand where they are. */
static int cwist_py_enqueue_apart(cwist_job_queue_t *queue, cwist_job_item_t *items,
                                  cwist_job_stored_t *stored, size_t count,
                                  const char *const *payloads, const size_t *sizes,
                                  const char *const *types, bool whole)
{
    for (size_t i = 0; i < count; i++) {
        items[i] = (cwist_job_item_t){.payload = payloads[i], .len = sizes[i], .type = types[i]};
    }
    return store(queue, items, stored, count, whole);
}
