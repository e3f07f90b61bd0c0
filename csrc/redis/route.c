/*
 * Which node of a cluster has a queue. All keys of a queue share a slot, so one address is all
 * there is to remember; a single server never moves anything, and the address stays the URL's.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/redis.h"

void cwist_jq__redis_route_get(const cwist_jq__queue *queue, cwist_jq__redis_endpoint *endpoint)
{
    memset(endpoint, 0, sizeof *endpoint);
    if (queue != NULL && queue->impl != NULL) {
        cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
        cwist_jq__lock(&own->lock);
        *endpoint = own->route;
        cwist_jq__unlock(&own->lock);
    }
}

/* Reads "MOVED <slot> <host>:<port>"; an empty host means the one that answered. */
static bool parse_moved(cwist_jq__redis_endpoint *to, const cwist_jq__redis_endpoint *from,
                        const char *url_host, const char *text)
{
    const char *at = strrchr(text, ' ');
    const char *colon = at != NULL ? strrchr(at, ':') : NULL;

    if (colon == NULL) {
        return false;
    }
    size_t len = (size_t)(colon - at - 1);
    const char *host = at + 1;
    if (len == 0) {
        host = from->host[0] != '\0' ? from->host : url_host;
        len = host != NULL ? strlen(host) : 0;
    }
    long port = strtol(colon + 1, NULL, 10);
    if (len == 0 || len >= sizeof to->host || port < 1 || port > 65535) {
        return false;
    }
    memset(to, 0, sizeof *to);
    memcpy(to->host, host, len);
    to->port = (int)port;
    return true;
}

void cwist_jq__redis_route_follow(cwist_jq__queue *queue, const cwist_jq__redis_endpoint *from,
                                  const redisReply *moved)
{
    cwist_jq__redis_endpoint to;

    if (queue != NULL && parse_moved(&to, from, queue->conn->url.host, moved->str)) {
        cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
        cwist_jq__lock(&own->lock);
        own->route = to;
        cwist_jq__unlock(&own->lock);
    }
}

void cwist_jq__redis_route_reset(cwist_jq__queue *queue)
{
    if (queue != NULL) {
        cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
        cwist_jq__lock(&own->lock);
        memset(&own->route, 0, sizeof own->route);
        cwist_jq__unlock(&own->lock);
    }
}
