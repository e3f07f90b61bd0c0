/*
 * Connections. One thread connects, everybody else waits for it: a connect cannot be cut short, and
 * so no caller is inside one when its deadline comes. The thread lives only while a connection is
 * wanted and missing.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"
#include "platform/detached.h"
#include "platform/process.h"
#include "platform/signals.h"
#include "tls/tls.h"

#define SETUP_MS 1000
#define SETUP_TRIPS 10 /* to look at three things, to make them, and to pull */
#define SETUP_FAR_MS 5000
#define POLL_MIN_NS UINT64_C(500000)
#define POLL_MAX_NS UINT64_C(10000000)

static void nats_unref(cwist_jq__nats *nats)
{
    if (atomic_fetch_sub(&nats->references, 1) == 1) {
        for (unsigned i = 0; i < CWIST_JQ_LANES; i++) {
            cwist_jq__link_unref(nats->lanes[i].link);
            cwist_jq__options_clear(&nats->lanes[i].options);
        }
        cwist_jq__mutex_destroy(&nats->lock);
        cwist_jq__free(nats);
    }
}

/* Keeps the cause of a failed connect. Under the lock. */
static void note_failure(cwist_jq__lane *lane, int code, bool final)
{
    lane->failures++;
    lane->final = final;
    lane->code = code;
    (void)snprintf(lane->text, sizeof lane->text, "%s", cwist_jq__error_text());
}

/* Keeps the link when one came. True when the connecting thread is done. Under the lock. */
static bool note_attempt(cwist_jq__lane *lane, cwist_jq__link *link, int code, bool final)
{
    if (code == CWIST_SUCCESS) {
        lane->link = link;
        lane->backoff.tries = 0;
        atomic_store(&lane->nats->max_payload, natsConnection_GetMaxPayload(link->nc));
        return true;
    }
    note_failure(lane, code, final);
    return final;
}

/*
 * A server that wants a certificate from its clients tells it, with TLS 1.3, only when the
 * handshake is over. libnats 3.4 says then that it got nothing in answer to its first words, a
 * newer one that the connection is closed.
 */
static void guess_at_certificate(void)
{
    const char *text = cwist_jq__error_text();

    if (strstr(text, "got ''") != NULL || strstr(text, "Connection Closed") != NULL) {
        cwist_jq__error_prefix("perhaps the server wants a certificate of ours (tls_cert): ");
    }
}

/* Tries the sets of options, beginning with any. *final: each failed for good. */
static int connect_once(cwist_jq__link **link, const cwist_jq__options *options, bool for_bursts,
                        bool *final)
{
    unsigned first = (unsigned)(cwist_jq__random() % options->count);
    int code = CWIST_ERROR_IO;
    bool all_final = true;

    for (unsigned i = 0; i < options->count && code != CWIST_SUCCESS; i++) {
        code = cwist_jq__link_open(link, options->sets[(first + i) % options->count], for_bursts,
                                   final);
        all_final = all_final && *final;
    }
    *final = all_final;
    if (options->tls && code == CWIST_ERROR_IO && !all_final) {
        guess_at_certificate();
    }
    return code;
}

static void connect_loop(void *argument)
{
    cwist_jq__lane *lane = argument;
    cwist_jq__nats *nats = lane->nats;
    bool for_bursts = lane == &nats->lanes[CWIST_JQ_TOGETHER];
    bool done = false;

    cwist_jq__lock(&nats->lock);
    while (!done && !nats->closed && lane->waiters > 0) {
        cwist_jq__link *link = NULL;
        bool final = false;
        cwist_jq__unlock(&nats->lock);
        int code = connect_once(&link, &lane->options, for_bursts, &final);
        cwist_jq__lock(&nats->lock);
        done = note_attempt(lane, link, code, final);
        if (!done) {
            uint64_t next = cwist_jq__backoff_next(&lane->backoff, CWIST_JQ_NEVER);
            cwist_jq__unlock(&nats->lock);
            cwist_jq__sleep_until(next);
            cwist_jq__lock(&nats->lock);
        }
    }
    lane->connecting = false;
    cwist_jq__unlock(&nats->lock);
    nats_unref(nats);
}

/* Starts the connecting thread if it does not run. Under the lock. */
static int start_connecting(cwist_jq__lane *lane)
{
    if (lane->connecting) {
        return CWIST_SUCCESS;
    }
    atomic_fetch_add(&lane->nats->references, 1);
    lane->connecting = true;
    if (!cwist_jq__start_detached(connect_loop, lane)) {
        lane->connecting = false;
        atomic_fetch_sub(&lane->nats->references, 1);
        return cwist_jq__fail(CWIST_ERROR_NOMEM, "cannot start a thread to connect with");
    }
    return CWIST_SUCCESS;
}

/* The link when it can be used; a broken one is put aside in *old. Under the lock. */
static cwist_jq__link *present_link(cwist_jq__lane *lane, cwist_jq__link **old)
{
    cwist_jq__link *link = lane->link;

    *old = NULL;
    if (link != NULL && !cwist_jq__link_usable(link)) {
        *old = link;
        lane->link = NULL;
        link = NULL;
    }
    if (link != NULL) {
        cwist_jq__link_ref(link);
    }
    return link;
}

/* Waits for the connecting thread. As a waiter, under the lock. */
static int await_link(cwist_jq__link **out, cwist_jq__lane *lane, const cwist_jq__wait *wait)
{
    cwist_jq__nats *nats = lane->nats;
    uint64_t failures = lane->failures;
    uint64_t pause = POLL_MIN_NS;
    int status = CWIST_SUCCESS;

    while (status == CWIST_SUCCESS) {
        cwist_jq__link *old = NULL;
        *out = present_link(lane, &old);
        if (*out == NULL && lane->failures != failures && lane->final) {
            status = cwist_jq__fail(lane->code, "%s", lane->text);
        } else if (*out == NULL) {
            status = start_connecting(lane);
        }
        cwist_jq__unlock(&nats->lock);
        cwist_jq__link_unref(old);
        if (*out == NULL && status == CWIST_SUCCESS) {
            status = cwist_jq__wait_check(wait);
            if (status == CWIST_SUCCESS) {
                cwist_jq__sleep_until(cwist_jq__earlier(wait->deadline, cwist_jq__now() + pause));
                pause = pause * 2 < POLL_MAX_NS ? pause * 2 : POLL_MAX_NS;
            }
        }
        cwist_jq__lock(&nats->lock);
        if (*out != NULL) {
            break;
        }
    }
    if (status == CWIST_JQ_PENDING) {
        (void)cwist_jq__fail(CWIST_ERROR_IO, "%s",
                             lane->failures > 0 ? lane->text : "cannot connect in time");
    }
    return status;
}

int cwist_jq__lane_get(cwist_jq__link **out, cwist_jq__nats *nats, cwist_jq__lane_name name,
                       const cwist_jq__wait *wait)
{
    cwist_jq__lane *lane = &nats->lanes[name];
    cwist_jq__link *old = NULL;
    int status = CWIST_SUCCESS;

    cwist_jq__lock(&nats->lock);
    *out = present_link(lane, &old);
    if (*out == NULL) {
        lane->waiters++;
        status = await_link(out, lane, wait);
        lane->waiters--;
    }
    cwist_jq__unlock(&nats->lock);
    cwist_jq__link_unref(old);
    return status;
}

int cwist_jq__link_get(cwist_jq__link **out, cwist_jq__nats *nats, const cwist_jq__wait *wait)
{
    return cwist_jq__lane_get(out, nats, CWIST_JQ_ALONE, wait);
}

static _Atomic uint64_t libnats_process; /* the process that started libnats */

bool cwist_jq__libnats_is_inherited(void)
{
    return atomic_load(&libnats_process) != cwist_jq__process_id();
}

static bool libnats_started;

static void open_libnats(void)
{
    libnats_started = nats_Open(-1) == NATS_OK;
}

/*
 * libnats ignores SIGPIPE for the whole process when it starts. It never raises one itself on plain
 * connections, so the program's own choice is put back; OpenSSL does raise it, so with TLS it
 * stays ignored.
 */
static void start_libnats(bool tls)
{
    static cwist_jq__mutex once = CWIST_JQ_MUTEX_INIT;

    cwist_jq__lock(&once);
    if (!libnats_started) {
        (void)cwist_jq__tls_start();
        cwist_jq__keep_sigpipe(open_libnats);
        atomic_store(&libnats_process, cwist_jq__process_id());
    }
    cwist_jq__unlock(&once);
    if (tls) {
        cwist_jq__ignore_sigpipe();
    }
}

static int make_nats(cwist_jq__conn *conn)
{
    cwist_jq__nats *nats = cwist_jq__calloc(1, sizeof *nats);

    if (nats == NULL) {
        return cwist_jq__no_memory();
    }
    start_libnats(cwist_jq__url_is_tls(&conn->url));
    atomic_init(&nats->references, 1);
    cwist_jq__mutex_init(&nats->lock);
    nats->process = cwist_jq__process_id();
    int status = CWIST_SUCCESS;
    for (unsigned i = 0; i < CWIST_JQ_LANES && status == CWIST_SUCCESS; i++) {
        nats->lanes[i].nats = nats;
        status = cwist_jq__options_new(&nats->lanes[i].options, conn, i == CWIST_JQ_TOGETHER);
    }
    if (status != CWIST_SUCCESS) {
        nats_unref(nats);
        return status;
    }
    conn->impl = nats;
    return CWIST_SUCCESS;
}

/* Proves that the server is new enough. */
static int check_version(cwist_jq__nats *nats, const cwist_jq__wait *wait)
{
    cwist_jq__link *link = NULL;
    char url[256] = "";
    int status = cwist_jq__link_get(&link, nats, wait);

    if (status == CWIST_SUCCESS) {
        natsStatus known = natsConnection_GetConnectedUrl(link->nc, url, sizeof url);
        if (known == NATS_OK) {
            status = cwist_jq__check_greeting(nats, url, nats->lanes[CWIST_JQ_ALONE].options.tls,
                                              wait->deadline);
        }
    }
    cwist_jq__link_unref(link);
    return status;
}

/* Proves that JetStream answers for this account. */
static int check_jetstream(cwist_jq__nats *nats, const cwist_jq__wait *wait)
{
    cwist_jq__answer answer;
    uint64_t start = cwist_jq__now();
    int status = cwist_jq__api(&answer, nats, "$JS.API.INFO", NULL, wait);

    if (status == CWIST_SUCCESS) {
        atomic_store(&nats->round_trip_ms, (cwist_jq__now() - start) / CWIST_JQ_MS);
    }
    if (status == CWIST_SUCCESS && answer.error != 0) {
        status = cwist_jq__answer_fail(&answer, "JetStream");
    }
    cwist_jq__answer_clear(&answer);
    return status;
}

uint64_t cwist_jq__late_ms(const cwist_jq__nats *nats)
{
    uint64_t distance = 2 * atomic_load(&nats->round_trip_ms);
    return 150 + (distance < 1000 ? distance : 1000);
}

uint64_t cwist_jq__setup_far_ms(const cwist_jq__nats *nats)
{
    uint64_t distance = SETUP_TRIPS * atomic_load(&nats->round_trip_ms);
    return distance < SETUP_FAR_MS ? distance : SETUP_FAR_MS;
}

uint64_t cwist_jq__setup_ms(const cwist_jq__nats *nats)
{
    return SETUP_MS + cwist_jq__setup_far_ms(nats);
}

int cwist_jq__nats_ping(cwist_jq__conn *conn, uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};

    return check_jetstream(conn->impl, &wait);
}

int cwist_jq__nats_open(cwist_jq__conn *conn, uint64_t deadline)
{
    cwist_jq__wait wait = {deadline, NULL};
    int status = make_nats(conn);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    status = check_version(conn->impl, &wait);
    if (status == CWIST_SUCCESS) {
        status = check_jetstream(conn->impl, &wait);
    }
    if (status == CWIST_JQ_PENDING) {
        status = CWIST_ERROR_IO; /* link_get has set the text */
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__nats_close(conn);
    }
    return status;
}

void cwist_jq__nats_close(cwist_jq__conn *conn)
{
    cwist_jq__nats *nats = conn->impl;

    conn->impl = NULL;
    if (nats == NULL || nats->process != cwist_jq__process_id()) {
        return; /* a forked child must not close the parent's socket */
    }
    cwist_jq__lock(&nats->lock);
    nats->closed = true;
    cwist_jq__link *links[CWIST_JQ_LANES];
    for (unsigned i = 0; i < CWIST_JQ_LANES; i++) {
        links[i] = nats->lanes[i].link;
        nats->lanes[i].link = NULL;
    }
    cwist_jq__unlock(&nats->lock);
    for (unsigned i = 0; i < CWIST_JQ_LANES; i++) {
        cwist_jq__link_unref(links[i]);
    }
    nats_unref(nats);
}
