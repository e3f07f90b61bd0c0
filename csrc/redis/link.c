/* One connection: sending, and reading replies with a deadline. */
#include <string.h>

#include "platform/socket.h"
#include "redis/redis.h"

bool cwist_jq__redis_endpoint_same(const cwist_jq__redis_endpoint *a,
                                   const cwist_jq__redis_endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static int connect_socket(const cwist_jq__conn *conn, const cwist_jq__redis_endpoint *endpoint,
                          uint64_t deadline)
{
    if (endpoint->host[0] != '\0') {
        return cwist_jq__connect_tcp(endpoint->host, endpoint->port, deadline);
    }
    if (conn->url.scheme == CWIST_JQ_SCHEME_UNIX) {
        return cwist_jq__connect_unix(conn->url.path, deadline);
    }
    return cwist_jq__connect_tcp(conn->url.host, conn->url.port, deadline);
}

int cwist_jq__redis_link_connect(cwist_jq__redis_link **out, const cwist_jq__conn *conn,
                                 const cwist_jq__redis_endpoint *endpoint, uint64_t deadline)
{
    cwist_jq__redis_link *link = cwist_jq__calloc(1, sizeof *link);
    int status = CWIST_SUCCESS;

    *out = NULL;
    if (link == NULL) {
        return cwist_jq__no_memory();
    }
    link->fd = -1;
    link->endpoint = *endpoint;
    link->reader = redisReaderCreate();
    if (link->reader == NULL) {
        status = cwist_jq__no_memory();
    } else {
        link->fd = connect_socket(conn, endpoint, deadline);
        status = link->fd < 0 ? link->fd : CWIST_SUCCESS;
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__redis_link_close(link);
        return status;
    }
    *out = link;
    return CWIST_SUCCESS;
}

void cwist_jq__redis_link_close(cwist_jq__redis_link *link)
{
    if (link == NULL) {
        return;
    }
    cwist_jq__tls_close(link->tls);
    if (link->fd >= 0) {
        cwist_jq__socket_close(link->fd);
    }
    if (link->reader != NULL) {
        redisReaderFree(link->reader);
    }
    cwist_jq__free(link);
}

static int send_all(cwist_jq__redis_link *link, const void *data, size_t len, uint64_t deadline)
{
    if (len == 0) {
        return CWIST_SUCCESS;
    }
    return link->tls == NULL ? cwist_jq__send_all(link->fd, data, len, deadline)
                             : cwist_jq__tls_send_all(link->tls, data, len, deadline);
}

static int wait_readable(cwist_jq__redis_link *link, uint64_t deadline)
{
    return link->tls == NULL ? cwist_jq__wait_readable(link->fd, deadline)
                             : cwist_jq__tls_wait_readable(link->tls, deadline);
}

static long recv_chunk(cwist_jq__redis_link *link)
{
    return link->tls == NULL ? cwist_jq__recv_some(link->fd, link->chunk, sizeof link->chunk)
                             : cwist_jq__tls_recv_some(link->tls, link->chunk, sizeof link->chunk);
}

bool cwist_jq__redis_link_is_idle(cwist_jq__redis_link *link)
{
    return link->tls == NULL ? cwist_jq__socket_is_idle(link->fd)
                             : cwist_jq__tls_is_idle(link->tls);
}

int cwist_jq__redis_link_send(cwist_jq__redis_link *link, const cwist_jq__redis_request *request,
                              uint64_t deadline, bool *complete)
{
    *complete = false;
    if (request->failed) {
        return cwist_jq__no_memory();
    }
    const struct {
        const void *data;
        size_t len;
    } parts[] = {
        {request->data, request->borrowed != NULL ? request->borrowed_at : request->len},
        {request->borrowed, request->borrowed_len},
        {request->data + request->borrowed_at,
         request->borrowed != NULL ? request->len - request->borrowed_at : 0},
    };
    link->outstanding += request->commands;
    link->partial = false;
    link->quiet = cwist_jq__now();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int status = send_all(link, parts[i].data, parts[i].len, deadline);
        if (status != CWIST_SUCCESS) {
            return status;
        }
    }
    *complete = true;
    return CWIST_SUCCESS;
}

/* Waits for bytes and feeds them to the reader. PENDING at the deadline. */
static int receive(cwist_jq__redis_link *link, uint64_t deadline, const cwist_jq__claim *claim)
{
    uint64_t began = cwist_jq__now();
    uint64_t until = deadline;

    if (claim != NULL) {
        int status = cwist_jq__claim_check(claim);
        if (status != CWIST_SUCCESS) {
            return status;
        }
        until = cwist_jq__earlier(deadline, cwist_jq__add_ms(began, CWIST_JQ_SLICE_MS));
    }
    int ready = wait_readable(link, until);
    if (ready < 0) {
        return ready;
    }
    if (ready == 0) {
        if (!link->partial) {
            link->quiet = until > began ? until : began;
        }
        return until < deadline ? CWIST_SUCCESS : CWIST_JQ_PENDING;
    }
    long count = recv_chunk(link);
    if (count < 0) {
        return (int)count;
    }
    if (count > 0 || link->tls != NULL) { /* of TLS a part may come that does not show yet */
        link->partial = true;
        link->heard = cwist_jq__now();
    }
    if (count > 0) {
        if (redisReaderFeed(link->reader, link->chunk, (size_t)count) != REDIS_OK) {
            return cwist_jq__no_memory();
        }
    }
    return CWIST_SUCCESS;
}

int cwist_jq__redis_link_read(cwist_jq__redis_link *link, uint64_t deadline,
                              const cwist_jq__claim *claim, redisReply **reply)
{
    *reply = NULL;
    for (;;) {
        void *found = NULL;
        if (redisReaderGetReply(link->reader, &found) != REDIS_OK) {
            return link->reader->err == REDIS_ERR_OOM
                       ? cwist_jq__no_memory()
                       : cwist_jq__fail(CWIST_ERROR_PROTOCOL,
                                        "the server does not speak the Redis protocol: %s",
                                        link->reader->errstr);
        }
        if (found != NULL) {
            link->outstanding -= link->outstanding > 0 ? 1 : 0;
            link->partial = false;
            *reply = found;
            return CWIST_SUCCESS;
        }
        int status = receive(link, deadline, claim);
        if (status != CWIST_SUCCESS) {
            return status;
        }
    }
}
