/*
 * A Redis server to keep queues on, as in CWIST.
 *
 * Threads: any thread.
 */
#ifndef CWIST_JQ_REDIS_H
#define CWIST_JQ_REDIS_H

#include <cwist/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cdef: begin */
typedef struct cwist_redis cwist_redis_t;

/*
 * Connects to a Redis server: host is a name or an address, port 1 to 65535. The timeouts are the
 * defaults of cwist_job_conn_open().
 * Returns: a handle that is yours to close, or NULL; then cwist_job_last_error() says why.
 */
CWIST_API cwist_redis_t *cwist_redis_connect(const char *host, int port);

/*
 * Closes the handle of a Redis server; NULL and a closed handle are allowed. Queues made from it go
 * on until they are destroyed themselves.
 */
CWIST_API void cwist_redis_close(cwist_redis_t *redis);
/* cdef: end */

#ifdef __cplusplus
}
#endif

#endif
