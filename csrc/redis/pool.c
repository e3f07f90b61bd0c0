/*
 * Links at rest. Each call takes one for itself, so a blocked claim delays nobody, and gives it
 * back when all replies have come. A link whose reply is outstanding is closed instead: a late
 * reply can never meet another command.
 */
#include "redis/redis.h"

#define IDLE_MAX 64
#define REST_NS 100000   /* a link that rested less is not looked at: it has just answered */
#define TRIP_MAX_MS 1000 /* a server that is slower was only busy when it was asked */

static cwist_jq__redis_server *server_of(const cwist_jq__conn *conn)
{
    return conn->impl;
}

void cwist_jq__redis_note_trip(cwist_jq__conn *conn, uint64_t started)
{
    cwist_jq__redis_server *server = server_of(conn);
    uint64_t took = (cwist_jq__now() - started) / CWIST_JQ_MS + 1;
    uint64_t seen = atomic_load(&server->round_trip);

    if (seen == 0 || took < seen) {
        atomic_store(&server->round_trip, took);
    }
}

uint64_t cwist_jq__redis_trips_ms(const cwist_jq__conn *conn, unsigned trips)
{
    uint64_t seen = atomic_load(&server_of(conn)->round_trip);
    uint64_t one = seen > 0 ? seen - 1 : 0;

    return trips * (one < TRIP_MAX_MS ? one : TRIP_MAX_MS);
}

static uint64_t rested(const cwist_jq__redis_link *link)
{
    uint64_t now = cwist_jq__now();

    return now > link->heard ? now - link->heard : 0;
}

cwist_jq__redis_link *cwist_jq__redis_take_idle(cwist_jq__conn *conn,
                                                const cwist_jq__redis_endpoint *endpoint)
{
    cwist_jq__redis_server *server = server_of(conn);

    for (;;) {
        cwist_jq__lock(&server->lock);
        cwist_jq__redis_link **at = &server->idle;
        while (*at != NULL && !cwist_jq__redis_endpoint_same(&(*at)->endpoint, endpoint)) {
            at = &(*at)->next;
        }
        cwist_jq__redis_link *link = *at;
        if (link != NULL) {
            *at = link->next;
            server->idle_count--;
        }
        cwist_jq__unlock(&server->lock);
        if (link == NULL || rested(link) < REST_NS || cwist_jq__redis_link_is_idle(link)) {
            return link;
        }
        /* The server ended it while it was at rest; so it did with the others, most likely. */
        cwist_jq__redis_drop(conn, link);
    }
}

int cwist_jq__redis_take(cwist_jq__redis_link **link, cwist_jq__conn *conn,
                         const cwist_jq__redis_endpoint *endpoint, uint64_t deadline,
                         const cwist_jq__claim *claim)
{
    cwist_jq__redis_server *server = server_of(conn);

    *link = cwist_jq__redis_take_idle(conn, endpoint);
    if (*link != NULL) {
        return CWIST_SUCCESS;
    }
    cwist_jq__lock(&server->lock);
    unsigned generation = server->generation;
    cwist_jq__unlock(&server->lock);
    int status = cwist_jq__redis_link_open(link, conn, endpoint, deadline, claim);
    if (status == CWIST_SUCCESS) {
        (*link)->generation = generation;
    }
    return status;
}

void cwist_jq__redis_give(cwist_jq__conn *conn, cwist_jq__redis_link *link)
{
    cwist_jq__redis_server *server = server_of(conn);

    cwist_jq__lock(&server->lock);
    if (link->outstanding == 0 && link->generation == server->generation &&
        server->idle_count < IDLE_MAX) {
        link->next = server->idle;
        server->idle = link;
        server->idle_count++;
        link = NULL;
    }
    cwist_jq__unlock(&server->lock);
    cwist_jq__redis_link_close(link);
}

void cwist_jq__redis_forget_links(cwist_jq__conn *conn)
{
    cwist_jq__redis_server *server = server_of(conn);

    cwist_jq__lock(&server->lock);
    cwist_jq__redis_link *link = server->idle;
    server->idle = NULL;
    server->idle_count = 0;
    server->generation++;
    cwist_jq__unlock(&server->lock);
    while (link != NULL) {
        cwist_jq__redis_link *next = link->next;
        cwist_jq__redis_link_close(link);
        link = next;
    }
}

void cwist_jq__redis_drop(cwist_jq__conn *conn, cwist_jq__redis_link *link)
{
    cwist_jq__redis_server *server = server_of(conn);

    cwist_jq__lock(&server->lock);
    bool current = link->generation == server->generation;
    cwist_jq__unlock(&server->lock);
    cwist_jq__redis_link_close(link);
    if (current) {
        cwist_jq__redis_forget_links(conn);
    }
}
