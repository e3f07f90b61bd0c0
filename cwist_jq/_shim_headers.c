/*
 * Headers of jobs, on their way to the server and back. Between C and Python they are one text:
 * name and value of each, with their NULs.
 */

/* Points headers at a text of Python's. Returns what stands behind the last one. */
static const char *point_headers(cwist_job_header_t *headers, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        headers[i].name = text;
        text += strlen(text) + 1;
        headers[i].value = text;
        text += strlen(text) + 1;
    }
    return text;
}

/* How long the text of a job's headers is. */
static size_t headers_size(const cwist_job_t *job, size_t count)
{
    const char *name;
    const char *value;
    size_t size = 0;

    for (size_t i = 0; i < count && cwist_job_header_at(job, i, &name, &value); i++) {
        size += strlen(name) + strlen(value) + 2;
    }
    return size;
}

/* Writes the text of a job's headers. Returns what stands behind it. */
static char *write_headers(const cwist_job_t *job, size_t count, char *to)
{
    const char *name;
    const char *value;

    for (size_t i = 0; i < count && cwist_job_header_at(job, i, &name, &value); i++) {
        to = put(to, name, strlen(name) + 1);
        to = put(to, value, strlen(value) + 1);
    }
    return to;
}

/*
 * Keeps the headers of all jobs of a batch, because a settled job has none in the library any more.
 * One block: where the text of each job ends, and the texts.
 */
static int keep_headers(cwist_py_batch *batch, const known_job *jobs)
{
    size_t size = 0;

    for (size_t i = 0; i < batch->count; i++) {
        size += headers_size(batch->handles[i], jobs[i].headers);
    }
    size_t *ends = malloc(batch->count * sizeof *ends + size);
    if (ends == NULL) {
        return CWIST_PY_NO_MEMORY;
    }
    char *texts = (char *)(ends + batch->count);
    char *at = texts;
    for (size_t i = 0; i < batch->count; i++) {
        at = write_headers(batch->handles[i], jobs[i].headers, at);
        ends[i] = (size_t)(at - texts);
    }
    batch->header_ends = ends;
    return CWIST_SUCCESS;
}

/* The text of a job's headers, of *size bytes; it lives as long as the batch. NULL: it has none. */
static const char *cwist_py_headers(const cwist_py_batch *batch, size_t index, size_t *size)
{
    const size_t *ends = batch->header_ends;

    *size = 0;
    if (ends == NULL) {
        return NULL;
    }
    size_t start = index == 0 ? 0 : ends[index - 1];
    *size = ends[index] - start;
    return *size != 0 ? (const char *)(ends + batch->count) + start : NULL;
}
