/* A Redis server to keep queues on, as in CWIST. */
#ifndef CWIST_JQ_REDIS_H
#define CWIST_JQ_REDIS_H

#include <cwist/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cdef: begin */
typedef struct cwist_redis cwist_redis_t;

/*
 * Connects to host (a name or an address) and port (1 to 65535) with the default timeouts of
 * durable_queue_ext.h. Returns a handle that is yours to close, or NULL: then
 * cwist_job_last_error() says why. Any thread.
 */
CWIST_API cwist_redis_t *cwist_redis_connect(const char *host, int port);

/*
 * Closes the handle; NULL and a closed handle are allowed. Queues made from it go on until they are
 * destroyed themselves. Any thread.
 */
CWIST_API void cwist_redis_close(cwist_redis_t *redis);
/* cdef: end */

#ifdef __cplusplus
}
#endif

#endif
