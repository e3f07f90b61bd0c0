/* What operators ask of a queue: dead letters, statistics, purge, pause. */

static int cwist_py_dead_count(cwist_job_queue_t *queue, uint64_t *count)
{
    return tell(code_of(cwist_job_queue_dead_count(queue, count)));
}

static int cwist_py_dead_list(cwist_job_queue_t *queue, cwist_job_dead_page_t **page, size_t most,
                              bool oldest_first, const char *type, const char *after)
{
    cwist_job_dead_query_t query = {
        .most = most, .oldest_first = oldest_first, .type = type, .after = after};
    return tell(code_of(cwist_job_dead_list(queue, &query, page)));
}

static int cwist_py_dead_read(cwist_job_queue_t *queue, cwist_job_dead_page_t **page,
                              const char *id)
{
    return tell(code_of(cwist_job_dead_read(queue, id, page)));
}

static int cwist_py_dead_requeue(cwist_job_queue_t *queue, const char *id)
{
    return tell(code_of(cwist_job_dead_requeue(queue, id)));
}

static int cwist_py_dead_requeue_all(cwist_job_queue_t *queue, const char *type, uint64_t *count)
{
    return tell(code_of(cwist_job_dead_requeue_all(queue, type, count)));
}

static int cwist_py_dead_purge(cwist_job_queue_t *queue, const char *id)
{
    return tell(code_of(cwist_job_dead_purge(queue, id)));
}

static int cwist_py_dead_purge_all(cwist_job_queue_t *queue, const char *type,
                                   uint64_t older_than_ms, uint64_t *count)
{
    return tell(code_of(cwist_job_dead_purge_all(queue, type, older_than_ms, count)));
}

static int cwist_py_stats(cwist_job_queue_t *queue, cwist_job_stats_t *stats)
{
    stats->struct_size = sizeof *stats;
    return tell(code_of(cwist_job_queue_stats(queue, stats)));
}

static int cwist_py_purge(cwist_job_queue_t *queue, uint64_t *count)
{
    return tell(code_of(cwist_job_queue_purge(queue, count)));
}

static int cwist_py_pause(cwist_job_queue_t *queue, bool paused)
{
    return tell(code_of(paused ? cwist_job_queue_pause(queue) : cwist_job_queue_resume(queue)));
}
