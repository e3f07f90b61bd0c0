/* One connection: sending, and reading replies with a deadline. */
#include <string.h>

#include "platform/socket.h"
#include "redis/redis.h"

#define AT_ONCE_MS 20

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
    link->reader = cwist_jq__replies_reader();
    if (link->reader == NULL) {
        status = cwist_jq__no_memory();
    } else {
        link->fd = connect_socket(conn, endpoint, deadline);
        status = link->fd < 0 ? link->fd : CWIST_SUCCESS;
        if (status == CWIST_SUCCESS && !cwist_jq__url_is_tls(&conn->url)) {
            cwist_jq__recv_may_wait(link->fd, AT_ONCE_MS);
        }
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
    cwist_jq__request_clear(&link->request);
    cwist_jq__free(link);
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

/* The own bytes and the borrowed ones in turn; returns how many parts. */
static size_t part_request(const cwist_jq__redis_request *request, cwist_jq__part *parts)
{
    size_t count = 0;
    size_t from = 0;

    for (unsigned i = 0; i < request->borrowed; i++) {
        const cwist_jq__redis_borrowed *borrowed = &request->parts[i];
        parts[count++] = (cwist_jq__part){request->data + from, borrowed->at - from};
        parts[count++] = (cwist_jq__part){borrowed->data, borrowed->len};
        from = borrowed->at;
    }
    parts[count++] = (cwist_jq__part){request->data + from, request->len - from};
    return count;
}

static int send_encrypted(cwist_jq__redis_link *link, const cwist_jq__part *parts, size_t count,
                          uint64_t deadline, size_t *sent)
{
    for (size_t i = 0; i < count; i++) {
        int status = parts[i].len == 0
                         ? CWIST_SUCCESS
                         : cwist_jq__tls_send_all(link->tls, parts[i].data, parts[i].len, deadline);
        if (status != CWIST_SUCCESS) {
            *sent += parts[i].len - 1; /* nobody can tell; the end has not left */
            return status;
        }
        *sent += parts[i].len;
    }
    return CWIST_SUCCESS;
}

int cwist_jq__redis_link_send(cwist_jq__redis_link *link, cwist_jq__redis_replies *replies,
                              uint64_t deadline, size_t *sent)
{
    cwist_jq__redis_request *request = &link->request;
    cwist_jq__part parts[2 * CWIST_JQ_REDIS_BORROWED + 1];

    *sent = 0;
    if (request->failed || !cwist_jq__replies_begin(replies, request->commands + 1)) {
        return cwist_jq__no_memory();
    }
    link->reader->privdata = replies;
    link->outstanding += request->commands;
    link->partial = false;
    link->slow = false;
    link->quiet = cwist_jq__now();
    size_t count = part_request(request, parts);
    return link->tls != NULL ? send_encrypted(link, parts, count, deadline, sent)
                             : cwist_jq__send_parts(link->fd, parts, count, deadline, sent);
}

/* Waits for bytes and feeds them to the reader. PENDING at the deadline. */
static int receive(cwist_jq__redis_link *link, uint64_t deadline, const cwist_jq__claim *claim)
{
    uint64_t began = cwist_jq__now();
    uint64_t until = deadline;
    long count = 0;

    if (claim != NULL) {
        int status = cwist_jq__claim_check(claim);
        if (status != CWIST_SUCCESS) {
            return status;
        }
        until = cwist_jq__earlier(deadline, cwist_jq__add_ms(began, CWIST_JQ_SLICE_MS));
    }
    if (link->tls == NULL && !link->slow && until >= cwist_jq__add_ms(began, AT_ONCE_MS)) {
        /* An answer mostly comes at once: to wait in recv saves a call of the system. */
        count = cwist_jq__recv_wait(link->fd, link->chunk, sizeof link->chunk);
        link->slow = count == 0;
        if (count == 0) {
            return CWIST_SUCCESS;
        }
    } else {
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
        count = recv_chunk(link);
    }
    if (count < 0) {
        return (int)count;
    }
    if (count > 0 || link->tls != NULL) { /* of TLS a part may come that does not show yet */
        link->partial = true;
        link->heard = cwist_jq__now();
    }
    if (count > 0 && redisReaderFeed(link->reader, link->chunk, (size_t)count) != REDIS_OK) {
        return cwist_jq__no_memory();
    }
    return CWIST_SUCCESS;
}

int cwist_jq__redis_link_read(cwist_jq__redis_link *link, uint64_t deadline,
                              const cwist_jq__claim *claim)
{
    cwist_jq__redis_replies *replies = link->reader->privdata;

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
            replies->at[replies->count++] = found;
            return CWIST_SUCCESS;
        }
        int status = receive(link, deadline, claim);
        if (status != CWIST_SUCCESS) {
            return status;
        }
    }
}
