/* What libnats is told before it connects. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "tls/tls.h"

#define WRITE_DEADLINE_MS 1000 /* a server that takes nothing for so long is gone */
#define SERVERS_MAX 64

static natsStatus set_credentials(natsOptions *options, const cwist_jq__url *url)
{
    if (url->user != NULL && url->password != NULL) {
        return natsOptions_SetUserInfo(options, url->user, url->password);
    }
    if (url->user != NULL || url->password != NULL) {
        return natsOptions_SetToken(options, url->user != NULL ? url->user : url->password);
    }
    return NATS_OK;
}

/* The host of "tls://host:port" or "tls://[address]:port", which the certificate must carry. */
static natsStatus expect_host(natsOptions *options, const char *server)
{
    const char *host = strstr(server, "://") + 3;
    const char *end = strrchr(host, ':');

    if (*host == '[') {
        host++;
        end--;
    }
    size_t len = cwist_jq__certificate_name_len(host, (size_t)(end - host));
    char *copy = cwist_jq__strndup(host, len);
    natsStatus status =
        copy != NULL ? natsOptions_SetExpectedHostname(options, copy) : NATS_NO_MEMORY;
    cwist_jq__free(copy);
    return status;
}

static natsStatus set_tls(natsOptions *options, const cwist_jq__tls_options *tls,
                          const char *server)
{
    const char *ca = tls->ca != NULL ? tls->ca : cwist_jq__tls_trust_fallback();
    natsStatus status = natsOptions_SetSecure(options, true);

    if (status == NATS_OK && ca != NULL) {
        status = natsOptions_LoadCATrustedCertificates(options, ca);
    }
    if (status == NATS_OK && tls->cert != NULL) {
        status = natsOptions_LoadCertificatesChain(options, tls->cert,
                                                   tls->key != NULL ? tls->key : tls->cert);
    }
    if (status == NATS_OK) {
        status = expect_host(options, server);
    }
    if (status == NATS_OK) {
        status = natsOptions_SkipServerVerification(options, tls->unverified);
    }
    return status;
}

static natsStatus set_options(natsOptions *options, const cwist_jq__conn *conn, bool for_bursts)
{
    natsStatus status = set_credentials(options, &conn->url);

    if (status == NATS_OK) {
        status = natsOptions_SetAllowReconnect(options, false);
    }
    if (status == NATS_OK) {
        status = natsOptions_SetSendAsap(options, !for_bursts);
    }
    if (status == NATS_OK) {
        status = natsOptions_SetPingInterval(options, 0); /* needs libnats' timer thread */
    }
    if (status == NATS_OK) {
        status = natsOptions_SetTimeout(options, (int64_t)conn->connect_timeout_ms);
    }
    if (status == NATS_OK) {
        status = natsOptions_SetWriteDeadline(options, WRITE_DEADLINE_MS);
    }
    if (status == NATS_OK) {
        status = natsOptions_SetName(options, "cwist_jq");
    }
    return status;
}

/* Makes the options for some servers; with TLS for one. */
static natsStatus make_options(natsOptions **options, const cwist_jq__conn *conn,
                               const char **servers, int count, bool for_bursts)
{
    natsStatus status = natsOptions_Create(options);

    if (status == NATS_OK) {
        status = natsOptions_SetServers(*options, servers, count);
    }
    if (status == NATS_OK) {
        status = set_options(*options, conn, for_bursts);
    }
    if (status == NATS_OK && cwist_jq__url_is_tls(&conn->url)) {
        status = set_tls(*options, &conn->url.tls, servers[0]);
    }
    return status;
}

/* Cuts a list at its commas. */
static int split(char *list, const char *parts[SERVERS_MAX])
{
    int count = 0;

    for (char *at = list; at != NULL && count < SERVERS_MAX;) {
        char *comma = strchr(at, ',');
        parts[count++] = at;
        if (comma != NULL) {
            *comma++ = '\0';
        }
        at = comma;
    }
    return count;
}

static int refuse(natsStatus status)
{
    if (status == NATS_NO_MEMORY) {
        return cwist_jq__no_memory();
    }
    return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "the NATS client refuses the options: %s",
                          natsStatus_GetText(status));
}

int cwist_jq__options_new(cwist_jq__options *options, const cwist_jq__conn *conn, bool for_bursts)
{
    const char *servers[SERVERS_MAX];
    bool tls = cwist_jq__url_is_tls(&conn->url);
    int status = tls ? cwist_jq__tls_check_files(&conn->url.tls) : CWIST_SUCCESS;

    memset(options, 0, sizeof *options);
    if (status != CWIST_SUCCESS) {
        return status;
    }
    options->tls = tls;
    char *list = cwist_jq__strdup(conn->url.servers);
    int count = list != NULL ? split(list, servers) : 0;
    unsigned sets = tls ? (unsigned)count : 1;
    options->sets = list != NULL ? cwist_jq__calloc(sets, sizeof *options->sets) : NULL;
    natsStatus refused = options->sets != NULL ? NATS_OK : NATS_NO_MEMORY;
    while (refused == NATS_OK && options->count < sets) {
        unsigned place = options->count++;
        refused =
            make_options(&options->sets[place], conn, servers + place, tls ? 1 : count, for_bursts);
    }
    cwist_jq__free(list);
    if (refused != NATS_OK) {
        cwist_jq__options_clear(options);
        return refuse(refused);
    }
    return CWIST_SUCCESS;
}

void cwist_jq__options_clear(cwist_jq__options *options)
{
    for (unsigned i = 0; i < options->count; i++) {
        natsOptions_Destroy(options->sets[i]);
    }
    cwist_jq__free(options->sets);
    memset(options, 0, sizeof *options);
}
