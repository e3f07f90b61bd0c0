/*
 * A new link: TLS when the URL asks for it, then AUTH, SELECT and HELLO in one round trip. HELLO
 * without argument changes nothing; it tells version, mode and client id. Who may not run it is
 * asked for INFO, and who may not run that either is taken for a single server of a good version.
 */
#include <stdlib.h>
#include <string.h>

#include "redis/redis.h"

static void build_handshake(cwist_jq__redis_request *request, const cwist_jq__url *url)
{
    if (url->password != NULL || url->user != NULL) {
        cwist_jq__request_command(request, "AUTH", url->user != NULL ? 2 : 1);
        if (url->user != NULL) {
            cwist_jq__request_text(request, url->user);
        }
        cwist_jq__request_text(request, url->password != NULL ? url->password : "");
    }
    if (url->database != 0) {
        cwist_jq__request_command(request, "SELECT", 1);
        cwist_jq__request_number(request, (uint64_t)url->database);
    }
    cwist_jq__request_command(request, "HELLO", 0);
}

static void copy_text(char *out, size_t size, const char *text, size_t len)
{
    size_t keep = len < size - 1 ? len : size - 1;
    memcpy(out, text, keep);
    out[keep] = '\0';
}

/* HELLO answers names and values in turn. */
static void read_hello(cwist_jq__redis_hello *hello, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        return;
    }
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const redisReply *name = reply->element[i];
        const redisReply *value = reply->element[i + 1];
        if (!cwist_jq__redis_is_text(name)) {
            continue;
        }
        if (strcmp(name->str, "version") == 0 && cwist_jq__redis_is_text(value)) {
            copy_text(hello->version, sizeof hello->version, value->str, value->len);
        } else if (strcmp(name->str, "mode") == 0 && cwist_jq__redis_is_text(value)) {
            hello->cluster = strcmp(value->str, "cluster") == 0;
        } else if (strcmp(name->str, "id") == 0 && cwist_jq__redis_is_number(value) &&
                   value->integer > 0) {
            hello->client_id = (uint64_t)value->integer;
        }
    }
}

static void read_info(cwist_jq__redis_hello *hello, const redisReply *reply)
{
    static const char version[] = "redis_version:";

    if (!cwist_jq__redis_is_text(reply)) {
        return;
    }
    const char *at = strstr(reply->str, version);
    if (at != NULL) {
        at += sizeof version - 1;
        copy_text(hello->version, sizeof hello->version, at, strcspn(at, "\r\n"));
    }
    hello->cluster = strstr(reply->str, "redis_mode:cluster") != NULL;
}

/*
 * Sends the link's request and reads its replies; the first error that is not for the last command
 * ends it.
 */
static int exchange(cwist_jq__redis_link *link, cwist_jq__redis_replies *replies, uint64_t deadline,
                    const cwist_jq__claim *claim)
{
    const cwist_jq__redis_request *request = &link->request;
    size_t sent = 0;
    int status = cwist_jq__redis_link_send(link, replies, deadline, &sent);

    for (unsigned i = 0; i < request->commands && status == CWIST_SUCCESS; i++) {
        status = cwist_jq__redis_link_read(link, deadline, claim);
        if (status == CWIST_JQ_PENDING) {
            status = cwist_jq__fail(CWIST_ERROR_IO, "the server accepts the connection and does "
                                                    "not answer");
        } else if (status == CWIST_ERROR_IO && link->heard == 0 && link->tls == NULL) {
            cwist_jq__error_prefix("no answer to the first command (a port for TLS needs "
                                   "rediss://): ");
        }
        if (status != CWIST_SUCCESS) {
            break;
        }
        const redisReply *reply = replies->at[i];
        cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);
        if (fault == CWIST_JQ_FAULT_NONE) {
            continue;
        }
        if (strcmp(request->names[i], "AUTH") == 0 && fault != CWIST_JQ_FAULT_AGAIN) {
            fault = CWIST_JQ_FAULT_DENIED;
        }
        bool login_missing = strncmp(reply->str, "NOAUTH", 6) == 0;
        if (i + 1 < request->commands || fault == CWIST_JQ_FAULT_AGAIN || login_missing) {
            status = cwist_jq__redis_fault_fail(fault, request->names[i], reply);
        }
    }
    return status;
}

static int check_version(const cwist_jq__redis_hello *hello)
{
    char *rest = NULL;
    long major = strtol(hello->version, &rest, 10);
    long minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;

    if (hello->version[0] == '\0' || major > 6 || (major == 6 && minor >= 2)) {
        return CWIST_SUCCESS;
    }
    return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                          "the server is Redis %s; needed: Redis 6.2 or newer, or Valkey",
                          hello->version);
}

static const redisReply *last_reply(const cwist_jq__redis_replies *replies)
{
    return replies->at[replies->count - 1];
}

static int shake_hands(cwist_jq__redis_link *link, const cwist_jq__url *url, uint64_t deadline,
                       const cwist_jq__claim *claim)
{
    cwist_jq__redis_request *request = &link->request;
    cwist_jq__redis_replies replies = {0};

    build_handshake(request, url);
    int status = exchange(link, &replies, deadline, claim);
    if (status == CWIST_SUCCESS &&
        cwist_jq__redis_fault_of(last_reply(&replies)) != CWIST_JQ_FAULT_NONE) {
        cwist_jq__request_reset(request);
        cwist_jq__request_command(request, "INFO", 1);
        cwist_jq__request_text(request, "server");
        status = exchange(link, &replies, deadline, claim);
        if (status == CWIST_SUCCESS) {
            read_info(&link->hello, last_reply(&replies));
        }
    } else if (status == CWIST_SUCCESS) {
        read_hello(&link->hello, last_reply(&replies));
    }
    if (status == CWIST_SUCCESS) {
        status = check_version(&link->hello);
    }
    cwist_jq__replies_clear(&replies);
    return status;
}

/* Encrypts a connected link. */
static int secure(cwist_jq__redis_link *link, const cwist_jq__conn *conn, uint64_t deadline,
                  const cwist_jq__claim *claim)
{
    const cwist_jq__redis_server *server = conn->impl;
    const char *host = link->endpoint.host[0] != '\0' ? link->endpoint.host : conn->url.host;
    int status = cwist_jq__tls_open(&link->tls, server->tls, link->fd, host);

    while (status == CWIST_SUCCESS) {
        uint64_t slice = cwist_jq__after_ms(CWIST_JQ_SLICE_MS);
        int done = cwist_jq__tls_shake_hands(
            link->tls, claim != NULL ? cwist_jq__earlier(deadline, slice) : deadline);
        if (done == 1) {
            return CWIST_SUCCESS;
        }
        if (done == 0 && claim != NULL) {
            status = cwist_jq__claim_check(claim);
        }
        if (done < 0) {
            status = done;
            cwist_jq__error_prefix("TLS handshake with %s: ", host);
        } else if (status == CWIST_SUCCESS && cwist_jq__passed(deadline)) {
            status = cwist_jq__fail(CWIST_ERROR_IO, "the server accepts the connection and does "
                                                    "not answer the TLS handshake; is this port "
                                                    "for TLS?");
        }
    }
    return status;
}

int cwist_jq__redis_link_open(cwist_jq__redis_link **link, const cwist_jq__conn *conn,
                              const cwist_jq__redis_endpoint *endpoint, uint64_t deadline,
                              const cwist_jq__claim *claim)
{
    uint64_t until = cwist_jq__earlier(deadline, cwist_jq__after_ms(conn->connect_timeout_ms));
    int status = cwist_jq__redis_link_connect(link, conn, endpoint, until);

    if (status == CWIST_SUCCESS && cwist_jq__url_is_tls(&conn->url)) {
        status = secure(*link, conn, until, claim);
    }
    if (status == CWIST_SUCCESS) {
        status = shake_hands(*link, &conn->url, until, claim);
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__redis_link_close(*link);
        *link = NULL;
    }
    return status;
}
