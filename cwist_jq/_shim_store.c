/* Jobs on their way to the server, one or many. */

static int cwist_py_enqueue(cwist_job_queue_t *queue, const void *payload, size_t len,
                            const char *type, char *id)
{
    return tell(code_of(cwist_job_queue_enqueue_id(queue, payload, len, type, id)));
}

/* Stores a job with options. headers: the text of so many headers. */
static int cwist_py_enqueue_item(cwist_job_queue_t *queue, cwist_job_stored_t *stored,
                                 const void *payload, size_t len, const char *type,
                                 uint64_t delay_ms, const char *key, const char *headers,
                                 size_t header_count)
{
    cwist_job_header_t room[CWIST_JOB_HEADERS_MAX];
    cwist_job_item_t item = {.payload = payload,
                             .len = len,
                             .type = type,
                             .delay_ms = delay_ms,
                             .dedupe_key = key,
                             .headers = room,
                             .header_count = header_count};

    (void)point_headers(room, headers, header_count);
    return tell(code_of(cwist_job_queue_enqueue_item(queue, &item, stored)));
}

/*
 * Puts the ids of stored jobs together in their own memory: lines, and a NUL. That of a duplicate
 * has CWIST_PY_DUPLICATE before it. What is written stays behind what is still to be read.
 */
static void join_ids(cwist_job_stored_t *stored, size_t count)
{
    char *at = (char *)stored;

    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(stored[i].id);
        if (stored[i].duplicate) {
            *at++ = CWIST_PY_DUPLICATE;
        }
        memmove(at, stored[i].id, len);
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
        stored[i].duplicate = false;
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

/*
 * Gives items their options. headers: the texts of all headers, header_counts[i] of them for the
 * i-th; room has a place for each.
 */
static void add_options(cwist_job_item_t *items, size_t count, const uint64_t *delays_ms,
                        const char *const *keys, const char *headers, const size_t *header_counts,
                        cwist_job_header_t *room)
{
    for (size_t i = 0; i < count; i++) {
        items[i].delay_ms = delays_ms[i];
        items[i].dedupe_key = keys[i];
        items[i].headers = room;
        items[i].header_count = header_counts[i];
        headers = point_headers(room, headers, header_counts[i]);
        room += header_counts[i];
    }
}

/*
 * Stores jobs whose payloads and types stand where they are. delays_ms may be NULL when none has
 * options; what comes behind it is as for add_options().
 */
static int cwist_py_enqueue_apart(cwist_job_queue_t *queue, cwist_job_item_t *items,
                                  cwist_job_stored_t *stored, size_t count,
                                  const char *const *payloads, const size_t *sizes,
                                  const char *const *types, bool whole, const uint64_t *delays_ms,
                                  const char *const *keys, const char *headers,
                                  const size_t *header_counts, cwist_job_header_t *room)
{
    for (size_t i = 0; i < count; i++) {
        items[i] = (cwist_job_item_t){.payload = payloads[i], .len = sizes[i], .type = types[i]};
    }
    if (delays_ms != NULL) {
        add_options(items, count, delays_ms, keys, headers, header_counts, room);
    }
    return store(queue, items, stored, count, whole);
}
