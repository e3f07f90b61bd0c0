/* The Redis backend: connections, queues, and the table of operations. */
#include <stdlib.h>
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

#define PAYLOAD_CEILING ((size_t)256 * 1024 * 1024)
#define FORGET_MS 100

/* ---- connections ---- */

/* What CONFIG GET may be asked once; a server may refuse each. */
typedef struct {
    size_t bulk_len; /* 0: not told */
    bool evicts;
    bool has_ceiling;
    bool persistence_told;
    bool append_only;
    bool snapshots;
} server_config;

static void build_config(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    static const char *const settings[] = {"proto-max-bulk-len", "maxmemory", "maxmemory-policy",
                                           "appendonly", "save"};
    (void)call;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        cwist_jq__request_command(request, "CONFIG", 2);
        cwist_jq__request_text(request, "GET");
        cwist_jq__request_text(request, settings[i]);
    }
}

/* The value in a reply of CONFIG GET; NULL when it is none. */
static const char *config_value(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                   cwist_jq__redis_is_text(reply->element[1])
               ? reply->element[1]->str
               : NULL;
}

static void read_config(server_config *config, redisReply *const *replies)
{
    const char *bulk_len = config_value(replies[0]);
    const char *ceiling = config_value(replies[1]);
    const char *policy = config_value(replies[2]);
    const char *append_only = config_value(replies[3]);
    const char *save = config_value(replies[4]);

    memset(config, 0, sizeof *config);
    if (bulk_len != NULL) {
        unsigned long long value = strtoull(bulk_len, NULL, 10);
        config->bulk_len = value > PAYLOAD_CEILING ? PAYLOAD_CEILING : (size_t)value;
    }
    config->has_ceiling = ceiling != NULL && strcmp(ceiling, "0") != 0;
    config->evicts = policy != NULL && strcmp(policy, "noeviction") != 0;
    config->persistence_told = append_only != NULL && save != NULL;
    config->append_only = append_only != NULL && strcmp(append_only, "yes") == 0;
    config->snapshots = save != NULL && *save != '\0';
}

static void warn(cwist_jq__conn *conn, const server_config *config)
{
    if (config->evicts && config->has_ceiling) {
        cwist_jq__log(conn, CWIST_JOB_LOG_WARNING,
                      "%s: maxmemory-policy lets the server evict keys when it is full, and jobs "
                      "with them; set it to noeviction",
                      conn->url.label);
    }
    if (config->persistence_told && !config->append_only && !config->snapshots) {
        cwist_jq__log(conn, CWIST_JOB_LOG_WARNING,
                      "%s: neither appendonly nor save is set: jobs are gone when the server ends",
                      conn->url.label);
    }
}

/* A first link proves address, credentials and version; AGAIN and IO are tried again. */
static int first_link(cwist_jq__redis_link **link, cwist_jq__conn *conn, uint64_t deadline)
{
    static const cwist_jq__redis_endpoint url_address = {"", 0};
    cwist_jq__backoff backoff = {0};

    for (;;) {
        int status = cwist_jq__redis_take(link, conn, &url_address, deadline, NULL);
        if (status != CWIST_ERROR_IO && status != CWIST_JQ_AGAIN) {
            return status;
        }
        cwist_jq__sleep_until(cwist_jq__backoff_next(&backoff, deadline));
        if (cwist_jq__passed(deadline)) {
            return status == CWIST_JQ_AGAIN ? CWIST_ERROR_REFUSED : status;
        }
    }
}

static void conn_close(cwist_jq__conn *conn)
{
    cwist_jq__redis_server *server = conn->impl;

    cwist_jq__redis_forget_links(conn);
    cwist_jq__tls_context_free(server->tls);
    cwist_jq__mutex_destroy(&server->lock);
    cwist_jq__free(server);
    conn->impl = NULL;
}

static int conn_open(cwist_jq__conn *conn, uint64_t deadline)
{
    cwist_jq__redis_link *link = NULL;

    cwist_jq__redis_server *server = cwist_jq__calloc(1, sizeof *server);
    if (server == NULL) {
        return cwist_jq__no_memory();
    }
    cwist_jq__mutex_init(&server->lock);
    server->payload_limit = PAYLOAD_CEILING;
    conn->impl = server;

    int status = CWIST_SUCCESS;
    if (cwist_jq__url_is_tls(&conn->url)) {
        status = cwist_jq__tls_context_new(&server->tls, &conn->url.tls);
    }
    if (status == CWIST_SUCCESS) {
        status = first_link(&link, conn, deadline);
    }
    if (status != CWIST_SUCCESS) {
        conn_close(conn);
        return status;
    }
    server->cluster = link->hello.cluster;
    cwist_jq__redis_give(conn, link);

    /* These are only good to know: a server that refuses or stalls now is good enough. */
    cwist_jq__redis_call call = {
        .conn = conn,
        .build = build_config,
        .deadline = cwist_jq__earlier(deadline, cwist_jq__after_ms(conn->connect_timeout_ms))};
    if (cwist_jq__redis_try(&call) == CWIST_SUCCESS) {
        server_config config;
        cwist_jq__redis_note_trip(conn, call.started);
        read_config(&config, call.replies.at);
        if (config.bulk_len != 0) {
            server->payload_limit = config.bulk_len;
        }
        warn(conn, &config);
    }
    cwist_jq__redis_call_clear(&call);
    return CWIST_SUCCESS;
}

static void build_ping(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    (void)call;
    cwist_jq__request_command(request, "PING", 0);
}

static int ping(cwist_jq__conn *conn, uint64_t deadline)
{
    cwist_jq__redis_call call = {
        .conn = conn, .build = build_ping, .deadline = deadline, .repeatable = true};
    int status = cwist_jq__redis_run(&call);

    if (status == CWIST_SUCCESS) {
        cwist_jq__redis_note_trip(conn, call.started);
    }
    /* Who may not PING, or is told that the disk is full, had an answer all the same. */
    cwist_jq__redis_fault fault =
        cwist_jq__redis_fault_of(call.replies.count == 1 ? call.replies.at[0] : NULL);
    if (fault == CWIST_JQ_FAULT_FULL ||
        (fault == CWIST_JQ_FAULT_DENIED && strncmp(call.replies.at[0]->str, "NOPERM", 6) == 0)) {
        status = CWIST_SUCCESS;
    }
    cwist_jq__redis_call_clear(&call);
    return status;
}

/* ---- queues ---- */

static void free_queue(cwist_jq__redis_queue *own)
{
    cwist_jq__free(own->keys.stream);
    cwist_jq__free(own->keys.delay);
    cwist_jq__free(own->keys.wait);
    cwist_jq__free(own->keys.dead);
    cwist_jq__free(own->keys.dead_body);
    cwist_jq__free(own->keys.conf);
    cwist_jq__free(own->keys.dedupe);
    cwist_jq__free(own->keys.xadd);
    cwist_jq__mutex_destroy(&own->lock);
    cwist_jq__free(own);
}

static bool make_keys(cwist_jq__redis_keys *keys, const char *prefix)
{
    keys->stream = cwist_jq__format("%ss", prefix);
    keys->delay = cwist_jq__format("%sdelay", prefix);
    keys->wait = cwist_jq__format("%swait", prefix);
    keys->dead = cwist_jq__format("%sdead", prefix);
    keys->dead_body = cwist_jq__format("%sdeadbody", prefix);
    keys->conf = cwist_jq__format("%sconf", prefix);
    keys->dedupe = cwist_jq__format("%sdedupe", prefix);
    keys->xadd =
        keys->stream == NULL
            ? NULL
            : cwist_jq__format("*7\r\n$4\r\nXADD\r\n$%zu\r\n%s\r\n$1\r\n*\r\n$4\r\ntype\r\n",
                               strlen(keys->stream), keys->stream);
    return keys->xadd != NULL && keys->delay != NULL && keys->wait != NULL && keys->dead != NULL &&
           keys->dead_body != NULL && keys->conf != NULL && keys->dedupe != NULL;
}

static int queue_open(cwist_jq__queue *queue)
{
    const cwist_jq__redis_server *server = queue->conn->impl;
    cwist_jq__redis_queue *own = cwist_jq__calloc(1, sizeof *own);
    char *prefix = cwist_jq__redis_prefix(queue->name, server->cluster);

    if (own != NULL) {
        cwist_jq__mutex_init(&own->lock);
        own->hint = CWIST_JQ_NEVER;
    }
    if (own == NULL || prefix == NULL || !make_keys(&own->keys, prefix)) {
        if (own != NULL) {
            free_queue(own);
        }
        cwist_jq__free(prefix);
        return cwist_jq__no_memory();
    }
    cwist_jq__free(prefix);
    queue->impl = own;
    return CWIST_SUCCESS;
}

static void build_forget(cwist_jq__redis_request *request, const cwist_jq__redis_call *call)
{
    cwist_jq__request_script(request, &cwist_jq__redis_script_forget, true, 2);
    cwist_jq__request_text(request, cwist_jq__redis_of(call->queue)->keys.stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_text(request, call->queue->consumer);
}

/* Takes a consumer that has nothing pending off the group; when that fails, others reap it. */
static void forget_consumer(cwist_jq__queue *queue)
{
    cwist_jq__redis_call call = {.conn = queue->conn,
                                 .queue = queue,
                                 .build = build_forget,
                                 .deadline = cwist_jq__after_ms(FORGET_MS)};
    cwist_jq__redis_endpoint route;

    /* Only over a link that is there: a queue is not kept open to reach a server that is gone. */
    cwist_jq__redis_route_get(queue, &route);
    cwist_jq__redis_link *link = cwist_jq__redis_take_idle(queue->conn, &route);
    if (link != NULL) {
        cwist_jq__redis_give(queue->conn, link);
        (void)cwist_jq__redis_try(&call);
        cwist_jq__redis_call_clear(&call);
    }
}

static void queue_close(cwist_jq__queue *queue)
{
    cwist_jq__redis_queue *own = queue->impl;

    if (queue->consumer_is_ours && own->has_read) {
        forget_consumer(queue);
    }
    free_queue(own);
    queue->impl = NULL;
}

static const cwist_jq__ops redis_ops = {
    .engine = "redis",
    .conn_open = conn_open,
    .ping = ping,
    .conn_close = conn_close,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .check_size = cwist_jq__redis_check_size,
    .enqueue = cwist_jq__redis_enqueue,
    .claim_start = cwist_jq__redis_claim_start,
    .claim_wait = cwist_jq__redis_claim_wait,
    .ack_and_poll = cwist_jq__redis_ack_and_poll,
    .claim_end = cwist_jq__redis_claim_end,
    .ack = cwist_jq__redis_ack,
    .retry = cwist_jq__redis_retry,
    .release = cwist_jq__redis_release,
    .bury = cwist_jq__redis_bury,
    .extend = cwist_jq__redis_extend,
    .dead_count = cwist_jq__redis_dead_count,
    .dead_list = cwist_jq__redis_dead_list,
    .dead_find = cwist_jq__redis_dead_find,
    .dead_requeue = cwist_jq__redis_dead_requeue,
    .dead_remove = cwist_jq__redis_dead_remove,
    .server_time = cwist_jq__redis_server_time,
    .stats = cwist_jq__redis_stats,
    .purge = cwist_jq__redis_purge,
    .pause = cwist_jq__redis_set_pause,
};

const cwist_jq__ops *const cwist_jq__backend_redis = &redis_ops;
