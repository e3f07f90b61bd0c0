/* Claims and the jobs that they bring. */

/* A payload up to this size is copied at once, a longer one when it is asked for. */
#define CWIST_PY_SMALL 4096

/* One claim and what it brought. Python reads what stands before `claim`. */
typedef struct cwist_py_batch {
    size_t count;
    const char *texts; /* id and type of each job, each with its NUL; no type is "" */
    size_t texts_len;
    const char *payloads; /* the small ones, one behind the other; they follow the texts */
    size_t payloads_len;
    const size_t *sizes; /* of all payloads */
    const uint32_t *attempts;
    size_t size;              /* of the first payload */
    uint32_t attempt;         /* of the first job */
    cwist_job_claim_t *claim; /* NULL: it ended */
    cwist_job_t **handles;    /* room for all that may come, and in the same block: */
    atomic_bool *settled;
    void *description; /* the block that texts, payloads, sizes and attempts lie in */
} cwist_py_batch;

/* Makes room for the jobs to come. The batch is zeroed. */
static int make_room(cwist_py_batch *batch, size_t most)
{
    batch->handles = calloc(most, sizeof *batch->handles + sizeof *batch->settled);
    if (batch->handles == NULL) {
        return CWIST_PY_NO_MEMORY;
    }
    batch->settled = (atomic_bool *)(batch->handles + most);
    return CWIST_SUCCESS;
}

static void end_claim(cwist_py_batch *batch)
{
    cwist_job_claim_end(batch->claim);
    batch->claim = NULL;
}

static const char *type_of(const cwist_job_t *job)
{
    const char *type = cwist_job_type(job);
    return type != NULL ? type : "";
}

/* Writes a text with its NUL. */
static char *put_text(char *at, const char *text)
{
    size_t size = strlen(text) + 1;
    memcpy(at, text, size);
    return at + size;
}

static void measure(cwist_py_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        size_t size = 0;
        (void)cwist_job_payload(batch->handles[i], &size);
        batch->payloads_len += size <= CWIST_PY_SMALL ? size : 0;
        batch->texts_len +=
            strlen(cwist_job_id(batch->handles[i])) + strlen(type_of(batch->handles[i])) + 2;
    }
}

/*
 * Puts what Python wants to know of the jobs together in one block, so that it takes all of it in a
 * few steps.
 */
static int describe(cwist_py_batch *batch)
{
    size_t count = batch->count;

    measure(batch);
    size_t *sizes = malloc(count * (sizeof *batch->sizes + sizeof *batch->attempts) +
                           batch->texts_len + batch->payloads_len);
    if (sizes == NULL) {
        return CWIST_PY_NO_MEMORY;
    }
    uint32_t *attempts = (uint32_t *)(sizes + count);
    char *text = (char *)(attempts + count);
    char *payloads = text + batch->texts_len;
    batch->description = sizes;
    batch->sizes = sizes;
    batch->attempts = attempts;
    batch->texts = text;
    batch->payloads = payloads;
    for (size_t i = 0; i < count; i++) {
        const cwist_job_t *job = batch->handles[i];
        const void *payload = cwist_job_payload(job, &sizes[i]);
        attempts[i] = cwist_job_attempts(job);
        text = put_text(put_text(text, cwist_job_id(job)), type_of(job));
        if (sizes[i] != 0 && sizes[i] <= CWIST_PY_SMALL) {
            memcpy(payloads, payload, sizes[i]);
            payloads += sizes[i];
        }
    }
    batch->size = sizes[0];
    batch->attempt = attempts[0];
    return CWIST_SUCCESS;
}

/*
 * Waits on for jobs. SUCCESS: the batch holds them. After another error than TIMEOUT the claim is
 * still there, because ending it could replace the error's text.
 */
static int cwist_py_claim_wait(cwist_py_batch *batch, uint64_t slice_ms)
{
    int code = code_of(cwist_job_claim_wait(batch->claim, slice_ms, batch->handles, &batch->count));

    if (code == CWIST_SUCCESS && batch->count == 0) {
        return CWIST_PY_PENDING;
    }
    if (code == CWIST_SUCCESS || code == CWIST_ERROR_TIMEOUT) {
        end_claim(batch);
    }
    return code == CWIST_SUCCESS ? tell(describe(batch)) : code;
}

/* Starts a claim and waits its first slice. The batch is zeroed, or its claim found nothing. */
static int cwist_py_claim(cwist_py_batch *batch, cwist_job_queue_t *queue, size_t most,
                          uint64_t timeout_ms, uint64_t slice_ms)
{
    int code = batch->handles != NULL ? CWIST_SUCCESS : make_room(batch, most);

    if (code == CWIST_SUCCESS) {
        code = code_of(cwist_job_claim_start(&batch->claim, queue, most, timeout_ms));
    }
    return code == CWIST_SUCCESS ? cwist_py_claim_wait(batch, slice_ms) : code;
}

/*
 * Ends a claim that Python gave up; jobs that arrived and are not settled go back, no attempt
 * spent.
 */
static void cwist_py_claim_undo(cwist_py_batch *batch, cwist_job_queue_t *queue)
{
    size_t left = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (!atomic_exchange(&batch->settled[i], true)) {
            batch->handles[left++] = batch->handles[i];
        }
    }
    if (left != 0) {
        (void)code_of(cwist_job_queue_release_many(queue, batch->handles, left, NULL));
    }
    end_claim(batch);
}

/* Where a payload lies. Borrowed until its job is settled. */
static const void *cwist_py_payload(const cwist_py_batch *batch, size_t index)
{
    return cwist_job_payload(batch->handles[index], NULL);
}

/* The net under jobs that nobody settled: they come back when their leases end. */
static void cwist_py_drop(cwist_py_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (!atomic_exchange(&batch->settled[i], true)) {
            cwist_job_destroy(batch->handles[i]);
        }
    }
    end_claim(batch);
    free(batch->description);
    free(batch->handles);
}
