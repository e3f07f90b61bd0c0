/* The ends of claimed jobs. A job is named by its batch and its place in it. */

/*
 * Takes the right to end a delivery; of several threads one gets it, the others are told SETTLED.
 * Behind it stands settled().
 */
static bool take_end(cwist_py_batch *batch, size_t index)
{
    return !atomic_exchange(&batch->settled[index], true);
}

/* What the end of a delivery came to. INVALID_PARAM leaves the job as it was. */
static int settled(cwist_py_batch *batch, size_t index, cwist_error_t error)
{
    int code = code_of(error);

    if (code == CWIST_ERROR_INVALID_PARAM) {
        atomic_store(&batch->settled[index], false);
    }
    return tell(code);
}

static int cwist_py_ack(cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue)
{
    if (!take_end(batch, index)) {
        return CWIST_PY_SETTLED;
    }
    return settled(batch, index, cwist_job_queue_ack(queue, batch->handles[index]));
}

/* delayed: delay_ms counts, else the retry policy of the queue. */
static int cwist_py_nack(cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue,
                         const char *reason, bool dead, bool delayed, uint64_t delay_ms)
{
    cwist_job_nack_opts_t opts = {
        .reason = reason, .dead = dead, .delayed = delayed, .delay_ms = delay_ms};

    if (!take_end(batch, index)) {
        return CWIST_PY_SETTLED;
    }
    return settled(batch, index, cwist_job_queue_nack_with(queue, batch->handles[index], &opts));
}

static int cwist_py_release(cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue,
                            uint64_t delay_ms)
{
    if (!take_end(batch, index)) {
        return CWIST_PY_SETTLED;
    }
    return settled(batch, index,
                   cwist_job_queue_release_after(queue, batch->handles[index], delay_ms));
}

/*
 * Marks jobs as settled and puts their handles together. The handle of one that was settled before
 * is stale, which the library tells.
 */
static void take_handles(cwist_job_t **handles, cwist_py_batch *const *batches,
                         const uint32_t *indices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        atomic_store(&batches[i]->settled[indices[i]], true);
        handles[i] = batches[i]->handles[indices[i]];
    }
}

/* Ends deliveries, 1 to CWIST_JOB_BATCH_MAX. codes has room for count results. */
static int cwist_py_settle_many(cwist_py_batch *const *batches, const uint32_t *indices,
                                size_t count, cwist_job_queue_t *queue, enum cwist_py_end end,
                                int *codes)
{
    cwist_job_t *handles[CWIST_JOB_BATCH_MAX];
    int code = CWIST_SUCCESS;

    take_handles(handles, batches, indices, count);
    switch (end) {
    case CWIST_PY_ACK:
        code = code_of(cwist_job_queue_ack_many(queue, handles, count, codes));
        break;
    case CWIST_PY_NACK:
        code = code_of(cwist_job_queue_nack_many(queue, handles, count, codes));
        break;
    case CWIST_PY_RELEASE:
        code = code_of(cwist_job_queue_release_many(queue, handles, count, codes));
        break;
    }
    return tell(code);
}

/* Acks jobs and claims what is ready into next, which is zeroed. It does not wait for jobs. */
static int cwist_py_ack_and_claim(cwist_py_batch *next, cwist_job_queue_t *queue, size_t most,
                                  cwist_py_batch *const *batches, const uint32_t *indices,
                                  size_t count, int *codes)
{
    cwist_job_t *handles[CWIST_JOB_BATCH_MAX];
    int code = make_room(next, most);

    if (code != CWIST_SUCCESS) {
        for (size_t i = 0; i < count; i++) {
            codes[i] = CWIST_ERROR_NOT_SENT;
        }
        return code;
    }
    take_handles(handles, batches, indices, count);
    code = code_of(cwist_job_queue_ack_and_claim(queue, handles, count, codes, most, 0,
                                                 next->handles, &next->count));
    return code == CWIST_SUCCESS ? tell(describe(next)) : code;
}

static int cwist_py_extend(const cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue)
{
    return atomic_load(&batch->settled[index])
               ? CWIST_PY_SETTLED
               : tell(code_of(cwist_job_queue_extend(queue, batch->handles[index])));
}

static int cwist_py_renew(const cwist_py_batch *batch, size_t index, cwist_job_queue_t *queue)
{
    return atomic_load(&batch->settled[index])
               ? CWIST_PY_SETTLED
               : tell(code_of(cwist_job_queue_renew(queue, batch->handles[index])));
}

static bool cwist_py_is_settled(const cwist_py_batch *batch, size_t index)
{
    return atomic_load(&batch->settled[index]);
}

static uint64_t cwist_py_lease_ms(const cwist_py_batch *batch, size_t index)
{
    return atomic_load(&batch->settled[index])
               ? 0
               : cwist_job_lease_remaining_ms(batch->handles[index]);
}

static bool cwist_py_lease_lost(const cwist_py_batch *batch, size_t index)
{
    return !atomic_load(&batch->settled[index]) && cwist_job_lease_lost(batch->handles[index]);
}
