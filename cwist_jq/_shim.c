/*
 * The C side of the binding: what would be slow or unsafe to do from Python. Every function may be
 * called from any thread, without the interpreter's lock. One unit: what Python calls is static.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cwist/sys/job/durable_queue_ext.h>

#include "platform/thread.h"

enum { CWIST_PY_PENDING = 1, CWIST_PY_SETTLED = 2, CWIST_PY_NO_MEMORY = 3, CWIST_PY_LOGGED = 4 };

enum { CWIST_PY_DUPLICATE = '=' };

enum cwist_py_end { CWIST_PY_ACK, CWIST_PY_NACK, CWIST_PY_RELEASE };

static int code_of(cwist_error_t error)
{
    return cwist_job_error_code(&error);
}

static int tell(int code); /* in _shim_log.c */

#include "_shim_claim.c"
#include "_shim_log.c"
#include "_shim_settle.c"
#include "_shim_store.c"
#include "_shim_upkeep.c"

/* ---- connections and queues ---- */

static int cwist_py_connect(cwist_job_conn_t **conn, const char *url, uint64_t connect_ms,
                            uint64_t operation_ms)
{
    cwist_job_conn_opts_t opts;

    cwist_job_conn_opts_init(&opts);
    opts.connect_timeout_ms = connect_ms;
    opts.operation_timeout_ms = operation_ms;
    opts.log = log_push;
    return tell(code_of(cwist_job_conn_open(conn, url, &opts)));
}

static int cwist_py_open(cwist_job_queue_t **queue, cwist_job_conn_t *conn, const char *name,
                         const char *consumer, uint64_t visibility_ms, uint32_t max_retries,
                         uint64_t retry_delay_ms, const cwist_job_queue_ext_opts_t *ext)
{
    cwist_job_queue_opts_t opts = {name, consumer, visibility_ms, max_retries, retry_delay_ms};
    return tell(code_of(cwist_job_queue_open_ext(queue, conn, &opts, ext)));
}

static int cwist_py_interrupt(cwist_job_queue_t *queue)
{
    return tell(code_of(cwist_job_queue_interrupt(queue)));
}
