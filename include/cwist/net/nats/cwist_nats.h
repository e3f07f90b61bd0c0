/*
 * A NATS server with JetStream to keep queues on, as in CWIST.
 *
 * Threads: any thread.
 */
#ifndef CWIST_JQ_NATS_H
#define CWIST_JQ_NATS_H

#include <cwist/export.h>
#include <cwist/sys/err/cwist_err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cdef: begin */
typedef struct cwist_nats cwist_nats_t;

/*
 * Connects to a NATS server: url is nats://host:port, several with commas, or tls://. The timeouts
 * are the defaults of cwist_job_conn_open(). On success *nats is a handle that is yours to destroy,
 * else NULL.
 * Errors: INVALID_PARAM (the URL), IO (no server), DENIED, UNSUPPORTED (NATS is not in this build,
 * the server is too old, JetStream is off).
 */
CWIST_API cwist_error_t cwist_nats_connect(cwist_nats_t **nats, const char *url);

/*
 * Closes the handle of a NATS server; NULL and a closed handle are allowed. Queues made from it go
 * on until they are destroyed themselves.
 */
CWIST_API void cwist_nats_destroy(cwist_nats_t *nats);
/* cdef: end */

#ifdef __cplusplus
}
#endif

#endif
