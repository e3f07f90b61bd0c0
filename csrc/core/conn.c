/* Connections: a description of a server, opened through one of the backends, shared by queues. */
#include <string.h>

#include <cwist/net/nats/cwist_nats.h>
#include <cwist/net/redis/cwist_redis.h>

#include "core/api.h"
#include "core/backend.h"

#define DEFAULT_CONNECT_MS 2000
#define DEFAULT_OPERATION_MS 5000
#define TIMEOUT_MAX_MS UINT64_C(86400000)

#ifndef CWIST_JQ_WITH_REDIS
const cwist_jq__ops *const cwist_jq__backend_redis = NULL;
#endif
#ifndef CWIST_JQ_WITH_NATS
const cwist_jq__ops *const cwist_jq__backend_nats = NULL;
#endif

void cwist_job_conn_opts_init(cwist_job_conn_opts_t *opts)
{
    if (opts != NULL) {
        memset(opts, 0, sizeof *opts);
        opts->struct_size = sizeof *opts;
        opts->connect_timeout_ms = DEFAULT_CONNECT_MS;
        opts->operation_timeout_ms = DEFAULT_OPERATION_MS;
    }
}

static void conn_finish(void *object)
{
    cwist_jq__conn *conn = object;

    if (conn->impl != NULL) {
        conn->ops->conn_close(conn);
    }
    cwist_jq__url_clear(&conn->url);
    cwist_jq__free(conn);
}

static int check_timeout(const char *field, uint64_t value)
{
    return value >= 1 && value <= TIMEOUT_MAX_MS
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s is %llu; allowed: 1 to 86400000 ms",
                                field, (unsigned long long)value);
}

static int apply_conn_opts(cwist_jq__conn *conn, const cwist_job_conn_opts_t *given)
{
    cwist_job_conn_opts_t opts;

    cwist_job_conn_opts_init(&opts);
    if (given != NULL) {
        if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof opts) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "opts->struct_size is %zu; fill opts with "
                                  "cwist_job_conn_opts_init() of this version",
                                  given->struct_size);
        }
        memcpy(&opts, given, given->struct_size);
    }
    int status = check_timeout("connect_timeout_ms", opts.connect_timeout_ms);
    if (status == CWIST_SUCCESS) {
        status = check_timeout("operation_timeout_ms", opts.operation_timeout_ms);
    }
    conn->connect_timeout_ms = opts.connect_timeout_ms;
    conn->operation_timeout_ms = opts.operation_timeout_ms;
    conn->log = opts.log;
    conn->log_context = opts.log_context;
    return status;
}

static int choose_backend(cwist_jq__conn *conn)
{
    bool nats = conn->url.scheme == CWIST_JQ_SCHEME_NATS || conn->url.scheme == CWIST_JQ_SCHEME_TLS;
    bool memory = conn->url.scheme == CWIST_JQ_SCHEME_MEMORY;

    conn->ops = memory ? cwist_jq__backend_memory
                : nats ? cwist_jq__backend_nats
                       : cwist_jq__backend_redis;
    return conn->ops != NULL
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                                "this build of cwist_jq has no %s backend; build it "
                                "with %s",
                                nats ? "NATS" : "Redis", nats ? "libnats" : "hiredis");
}

/* Opens a connection to an URL; on success *handle owns it. */
static int open_url(void **handle, const char *text, const cwist_job_conn_opts_t *opts)
{
    cwist_jq__conn *conn = cwist_jq__calloc(1, sizeof *conn);

    *handle = NULL;
    if (conn == NULL) {
        return cwist_jq__no_memory();
    }
    cwist_jq__object_init(conn, CWIST_JQ_KIND_CONN, conn_finish);

    int status = cwist_jq__url_parse(&conn->url, text);
    if (status == CWIST_SUCCESS) {
        status = apply_conn_opts(conn, opts);
    }
    if (status == CWIST_SUCCESS) {
        status = choose_backend(conn);
    }
    if (status == CWIST_SUCCESS) {
        status = conn->ops->conn_open(conn, cwist_jq__after_ms(conn->operation_timeout_ms));
    }
    if (status == CWIST_SUCCESS) {
        *handle = cwist_jq__handle_new(conn);
        status = *handle != NULL ? CWIST_SUCCESS : cwist_jq__no_memory();
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__error_prefix("connect%s%s: ", conn->url.label != NULL ? " to " : "",
                               conn->url.label != NULL ? conn->url.label : "");
        cwist_jq__unref(conn);
    }
    return status;
}

static void close_handle(const void *handle)
{
    void *conn = NULL;
    if (handle != NULL &&
        cwist_jq__handle_take(&conn, handle, CWIST_JQ_KIND_CONN, "connection") == CWIST_SUCCESS) {
        cwist_jq__unref(conn);
    }
}

cwist_error_t cwist_job_conn_open(cwist_job_conn_t **conn, const char *url,
                                  const cwist_job_conn_opts_t *opts)
{
    if (conn == NULL) {
        return cwist_jq__result(cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "connect: conn is NULL"));
    }
    void *handle = NULL;
    int status = open_url(&handle, url, opts);
    *conn = handle;
    return cwist_jq__result(status);
}

void cwist_job_conn_close(cwist_job_conn_t *conn)
{
    close_handle(conn);
}

cwist_redis_t *cwist_redis_connect(const char *host, int port)
{
    void *handle = NULL;

    if (host == NULL || *host == '\0' || strpbrk(host, "/?#@,[]%") != NULL) {
        (void)cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                             "connect: host is missing or not a host name or address");
        return NULL;
    }
    if (port < 1 || port > 65535) {
        (void)cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "connect: port is %d; allowed: 1 to 65535",
                             port);
        return NULL;
    }
    bool v6 = strchr(host, ':') != NULL;
    char *url = cwist_jq__format(v6 ? "redis://[%s]:%d" : "redis://%s:%d", host, port);
    if (url == NULL) {
        (void)cwist_jq__no_memory();
        return NULL;
    }
    (void)open_url(&handle, url, NULL);
    cwist_jq__free(url);
    return handle;
}

void cwist_redis_close(cwist_redis_t *redis)
{
    close_handle(redis);
}

cwist_error_t cwist_nats_connect(cwist_nats_t **nats, const char *url)
{
    if (nats == NULL) {
        return cwist_jq__result(cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "connect: nats is NULL"));
    }
    *nats = NULL;
    if (url == NULL) {
        return cwist_jq__result(cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "connect: url is NULL"));
    }
    /* The NATS client takes a bare host:port too, so programs written for it may pass one. */
    bool bare = strstr(url, "://") == NULL;
    char *full = cwist_jq__format("%s%s", bare ? "nats://" : "", url);
    if (full == NULL) {
        return cwist_jq__result(cwist_jq__no_memory());
    }
    void *handle = NULL;
    int status =
        strncmp(full, "nats://", 7) == 0 || strncmp(full, "tls://", 6) == 0
            ? open_url(&handle, full, NULL)
            : cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "connect: url is not nats:// or tls://");
    cwist_jq__free(full);
    *nats = handle;
    return cwist_jq__result(status);
}

void cwist_nats_destroy(cwist_nats_t *nats)
{
    close_handle(nats);
}
