/* Claims and the jobs that they bring. */

/* A payload up to this size is copied at once, a longer one when it is asked for. */
#define CWIST_PY_SMALL 4096

/* One claim and what it brought. Python reads what stands before `claim`; the texts and the small
 * payloads only until cwist_py_described(). */
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
    void *numbers;       /* the block of sizes and attempts */
    char *description;   /* that of texts and payloads */
    size_t *header_ends; /* that of keep_headers(); NULL: no job has headers */
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

/* What C has of a job; the library looks a handle up for each of these. */
typedef struct known_job {
    const char *id;
    const char *type; /* never NULL */
    const void *payload;
    size_t id_size; /* with the NUL, as type_size */
    size_t type_size;
    size_t headers; /* how many */
} known_job;

/* Looks the jobs up; adds their sizes up in the batch. Returns whether one has headers. */
static bool look_up(cwist_py_batch *batch, known_job *jobs, size_t *sizes, uint32_t *attempts)
{
    bool headers = false;

    for (size_t i = 0; i < batch->count; i++) {
        const cwist_job_t *handle = batch->handles[i];
        known_job *job = &jobs[i];
        const char *type = cwist_job_type(handle);
        job->id = cwist_job_id(handle);
        job->id_size = strlen(job->id) + 1;
        job->type = type != NULL ? type : "";
        job->type_size = strlen(job->type) + 1;
        job->payload = cwist_job_payload(handle, &sizes[i]);
        job->headers = cwist_job_header_count(handle);
        headers = headers || job->headers != 0;
        attempts[i] = cwist_job_attempts(handle);
        batch->texts_len += job->id_size + job->type_size;
        batch->payloads_len += sizes[i] <= CWIST_PY_SMALL ? sizes[i] : 0;
    }
    return headers;
}

static char *put(char *at, const void *from, size_t size)
{
    memcpy(at, from, size);
    return at + size;
}

#include "_shim_headers.c"

/* Writes the texts and behind them the small payloads. */
static void write_jobs(const cwist_py_batch *batch, const known_job *jobs, char *text)
{
    char *payload = text + batch->texts_len;

    for (size_t i = 0; i < batch->count; i++) {
        text = put(text, jobs[i].id, jobs[i].id_size);
        text = put(text, jobs[i].type, jobs[i].type_size);
        if (batch->sizes[i] != 0 && batch->sizes[i] <= CWIST_PY_SMALL) {
            payload = put(payload, jobs[i].payload, batch->sizes[i]);
        }
    }
}

/* Puts what Python wants to know of the jobs together, so that it takes all of it in a few steps.
 */
static int describe(cwist_py_batch *batch)
{
    size_t count = batch->count;
    known_job one;
    known_job *jobs = count == 1 ? &one : malloc(count * sizeof *jobs);
    size_t *sizes = malloc(count * (sizeof *sizes + sizeof(uint32_t)));
    uint32_t *attempts = (uint32_t *)(sizes + count);
    int code = CWIST_SUCCESS;

    batch->numbers = sizes;
    if (jobs != NULL && sizes != NULL) {
        if (look_up(batch, jobs, sizes, attempts)) {
            code = keep_headers(batch, jobs);
        }
        batch->texts = batch->description = malloc(batch->texts_len + batch->payloads_len);
    }
    if (batch->description != NULL) {
        batch->payloads = batch->texts + batch->texts_len;
        batch->sizes = sizes;
        batch->attempts = attempts;
        batch->size = sizes[0];
        batch->attempt = attempts[0];
        write_jobs(batch, jobs, batch->description);
    }
    if (jobs != &one) {
        free(jobs);
    }
    return batch->description != NULL ? code : CWIST_PY_NO_MEMORY;
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

/* Frees the texts and the small payloads, which Python has copied: jobs may live on for long. */
static void cwist_py_described(cwist_py_batch *batch)
{
    free(batch->description);
    batch->description = NULL;
    batch->texts = NULL;
    batch->payloads = NULL;
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
    free(batch->numbers);
    free(batch->description);
    free(batch->header_ends);
    free(batch->handles);
}
