/* A link is one libnats connection. It is never mended: when it breaks, another takes its place. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/inherit.h"

#define VIOLATIONS 8
#define VIOLATION_SIZE 256
#define PROBE_MS 500
#define FLUSH_MS 100

/*
 * What the server complains about out of turn. libnats calls back from a thread of its own, also
 * after the connection is destroyed, so this is counted apart from the link.
 */
struct cwist_jq__watch {
    atomic_uint references;
    cwist_jq__mutex lock;
    atomic_uint count;
    char texts[VIOLATIONS][VIOLATION_SIZE]; /* the newest, in a ring */
};

static void watch_unref(cwist_jq__watch *watch)
{
    if (atomic_fetch_sub(&watch->references, 1) == 1) {
        cwist_jq__mutex_destroy(&watch->lock);
        cwist_jq__free(watch);
    }
}

static void on_error(natsConnection *nc, natsSubscription *subscription, natsStatus error,
                     void *closure)
{
    cwist_jq__watch *watch = closure;
    const char *text = NULL;

    (void)subscription;
    if (error != NATS_NOT_PERMITTED) {
        return;
    }
    text = nats_GetLastError(NULL); /* of this thread: libnats sets it for the callback */
    if (text == NULL || *text == '\0') {
        (void)natsConnection_GetLastError(nc, &text);
    }
    cwist_jq__lock(&watch->lock);
    unsigned place = atomic_load(&watch->count) % VIOLATIONS;
    (void)snprintf(watch->texts[place], VIOLATION_SIZE, "%s",
                   text != NULL ? text : "permissions violation");
    atomic_fetch_add(&watch->count, 1);
    cwist_jq__unlock(&watch->lock);
}

/* The last callback of a connection that was once up. */
static void on_closed(natsConnection *nc, void *closure)
{
    (void)nc;
    watch_unref(closure);
}

unsigned cwist_jq__violations(const cwist_jq__link *link)
{
    return atomic_load(&link->watch->count);
}

/* The text names the subject in quotes; a longer subject with the same beginning is another. */
static bool names_subject(const char *text, const char *subject)
{
    size_t len = subject != NULL ? strlen(subject) : 0;

    for (const char *at = text; len > 0 && (at = strstr(at, subject)) != NULL; at++) {
        if (at > text && at[-1] == '"' && at[len] == '"') {
            return true;
        }
    }
    return false;
}

/* What libnats noted last for the connection: for a process in which nobody calls back. */
static void ask_libnats(char *text, size_t size, cwist_jq__link *link)
{
    const char *noted = NULL;

    if (natsConnection_GetLastError(link->nc, &noted) == NATS_NOT_PERMITTED && noted != NULL) {
        (void)snprintf(text, size, "%s", noted);
    }
}

int cwist_jq__violation(cwist_jq__link *link, unsigned seen, const char *subject, const char *inbox)
{
    cwist_jq__watch *watch = link->watch;
    char text[VIOLATION_SIZE] = "";

    if (cwist_jq__libnats_is_inherited()) {
        ask_libnats(text, sizeof text, link);
        bool ours = names_subject(text, subject) || names_subject(text, inbox);
        text[0] = ours ? text[0] : '\0';
    }
    if (text[0] == '\0' && atomic_load(&watch->count) == seen) {
        return CWIST_SUCCESS;
    }
    cwist_jq__lock(&watch->lock);
    unsigned count = atomic_load(&watch->count);
    unsigned fresh = count - seen < VIOLATIONS ? count - seen : VIOLATIONS;
    for (unsigned i = 1; i <= fresh; i++) {
        const char *at = watch->texts[(count - i) % VIOLATIONS];
        if (names_subject(at, subject) || names_subject(at, inbox)) {
            (void)snprintf(text, sizeof text, "%s", at);
        }
    }
    cwist_jq__unlock(&watch->lock);
    return text[0] == '\0' ? CWIST_SUCCESS
                           : cwist_jq__fail(CWIST_ERROR_DENIED, "the server said: %s", text);
}

/* The public code of a failed connect, and whether trying again is pointless. */
static int connect_code(natsStatus status, bool *final)
{
    *final = true;
    switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
        return CWIST_ERROR_DENIED;
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED:
        return CWIST_ERROR_UNSUPPORTED;
    case NATS_NO_MEMORY:
        return CWIST_ERROR_NOMEM;
    default:
        *final = false;
        return CWIST_ERROR_IO;
    }
}

/* libnats puts "(file.c:123): " before its texts. */
static const char *without_place(const char *text)
{
    const char *after = text != NULL && *text == '(' ? strstr(text, "): ") : NULL;
    return after != NULL ? after + 3 : text;
}

/* What libnats says of a bad certificate is "<number>:<reason>:<whose>" behind other words. */
static const char *certificate_fault(const char *text)
{
    static const char mark[] = "handshake error: ";
    const char *at = text != NULL ? strstr(text, mark) : NULL;

    if (at == NULL) {
        return NULL;
    }
    at += sizeof mark - 1;
    size_t digits = strspn(at, "0123456789");
    return digits > 0 && at[digits] == ':' ? at + digits + 1 : NULL;
}

/* Whether the server said in an alert that it does not accept our certificate. */
static bool is_our_certificate(const char *text)
{
    const char *alert = text != NULL ? strstr(text, "alert ") : NULL;

    return alert != NULL &&
           (strstr(alert, "certificate") != NULL || strstr(alert, "unknown ca") != NULL);
}

static int fail_tls(const char *text, bool *final)
{
    const char *fault = certificate_fault(text);

    *final = fault != NULL || is_our_certificate(text);
    if (fault != NULL) {
        return cwist_jq__fail(CWIST_ERROR_DENIED, "TLS handshake: certificate verify failed: %s",
                              fault);
    }
    if (*final) {
        return cwist_jq__fail(CWIST_ERROR_DENIED, "the server does not accept our certificate: %s",
                              text);
    }
    return cwist_jq__fail(CWIST_ERROR_IO, "cannot connect: %s",
                          text != NULL ? text : natsStatus_GetText(NATS_SSL_ERROR));
}

static int fail_connect(natsStatus status, bool *final)
{
    int code = connect_code(status, final);
    const char *text = without_place(nats_GetLastError(NULL));
    const char *name = natsStatus_GetText(status);

    if (status == NATS_SSL_ERROR) {
        return fail_tls(text, final);
    }

    if (text == NULL || *text == '\0' || strcmp(text, name) == 0) {
        return cwist_jq__fail(code, "cannot connect: %s", name);
    }
    return cwist_jq__fail(code, "cannot connect: %s (%s)", name, text);
}

static int connected_port(natsConnection *nc)
{
    char url[256] = "";
    unsigned port = 0;

    if (natsConnection_GetConnectedUrl(nc, url, sizeof url) == NATS_OK) {
        const char *colon = strrchr(url, ':');
        for (const char *at = colon; at != NULL && at[1] >= '0' && at[1] <= '9'; at++) {
            port = port * 10 + (unsigned)(at[1] - '0');
        }
    }
    return (int)port;
}

static natsStatus connect_once(cwist_jq__link *link, natsOptions *options)
{
    cwist_jq__fds before;
    natsStatus status = natsOptions_SetErrorHandler(options, on_error, link->watch);

    bool called_back = !cwist_jq__libnats_is_inherited();
    if (status == NATS_OK && called_back) {
        status = natsOptions_SetClosedCB(options, on_closed, link->watch);
    }
    if (status == NATS_OK) {
        cwist_jq__fds_snapshot(&before);
        status = natsConnection_Connect(&link->nc, options);
    }
    if (status == NATS_OK) {
        if (called_back) {
            atomic_fetch_add(&link->watch->references, 1); /* given back by on_closed */
        }
        cwist_jq__close_on_exec(&before, connected_port(link->nc));
    }
    return status;
}

int cwist_jq__link_open(cwist_jq__link **out, natsOptions *options, bool for_bursts, bool *final)
{
    cwist_jq__link *link = cwist_jq__calloc(1, sizeof *link);
    cwist_jq__watch *watch = cwist_jq__calloc(1, sizeof *watch);

    *out = NULL;
    *final = true;
    if (link == NULL || watch == NULL) {
        cwist_jq__free(link);
        cwist_jq__free(watch);
        return cwist_jq__no_memory();
    }
    atomic_init(&watch->references, 2); /* the link's and, for now, this function's */
    cwist_jq__mutex_init(&watch->lock);
    atomic_init(&link->references, 1);
    cwist_jq__mutex_init(&link->lock);
    link->watch = watch;
    link->for_bursts = for_bursts;
    /* Not libnats' own names: those repeat in a forked child. */
    (void)snprintf(link->prefix, sizeof link->prefix, "_INBOX.%016llx%08llx",
                   (unsigned long long)cwist_jq__random(),
                   (unsigned long long)(cwist_jq__random() & 0xFFFFFFFFu));

    natsStatus status = connect_once(link, options);
    int code = CWIST_SUCCESS;
    if (status == NATS_OK) {
        *out = link;
    } else {
        code = fail_connect(status, final);
        link->nc = NULL;
        cwist_jq__link_unref(link);
    }
    watch_unref(watch);
    return code;
}

void cwist_jq__link_ref(cwist_jq__link *link)
{
    atomic_fetch_add(&link->references, 1);
}

static void free_inbox(cwist_jq__inbox *inbox)
{
    natsSubscription_Destroy(inbox->subscription);
    cwist_jq__free(inbox);
}

void cwist_jq__link_unref(cwist_jq__link *link)
{
    if (link == NULL || atomic_fetch_sub(&link->references, 1) != 1) {
        return;
    }
    while (link->free_inboxes != NULL) {
        cwist_jq__inbox *inbox = link->free_inboxes;
        link->free_inboxes = inbox->next;
        free_inbox(inbox);
    }
    natsConnection_Destroy(link->nc);
    cwist_jq__mutex_destroy(&link->lock);
    watch_unref(link->watch);
    cwist_jq__free(link);
}

bool cwist_jq__link_usable(cwist_jq__link *link)
{
    return !atomic_load(&link->broken) && !natsConnection_IsClosed(link->nc);
}

void cwist_jq__link_break(cwist_jq__link *link)
{
    if (!atomic_exchange(&link->broken, true)) {
        natsConnection_Close(link->nc);
    }
}

uint64_t cwist_jq__link_messages(cwist_jq__link *link)
{
    natsStatistics *statistics = NULL;
    uint64_t count = 0;

    if (natsStatistics_Create(&statistics) == NATS_OK &&
        natsConnection_GetStats(link->nc, statistics) == NATS_OK) {
        (void)natsStatistics_GetCounts(statistics, &count, NULL, NULL, NULL, NULL);
    }
    natsStatistics_Destroy(statistics);
    return count;
}

/* What is on its way for others may stand before the answer; while it comes the link is alive. */
void cwist_jq__link_probe(cwist_jq__link *link, uint64_t deadline)
{
    uint64_t left = cwist_jq__ms_left(deadline);
    int64_t ms = (int64_t)(left < PROBE_MS ? left : PROBE_MS);
    uint64_t before = cwist_jq__link_messages(link);

    if (ms > 0 && natsConnection_FlushTimeout(link->nc, ms) != NATS_OK &&
        (natsConnection_IsClosed(link->nc) || cwist_jq__link_messages(link) == before)) {
        cwist_jq__link_break(link);
    }
}

/*
 * libnats has no plain way to write its buffer: this writes a ping behind it and waits for the
 * answer, which comes before those of JetStream. A late answer does no harm: the bytes have left.
 */
bool cwist_jq__link_flush(cwist_jq__link *link)
{
    natsStatus flushed = natsConnection_FlushTimeout(link->nc, FLUSH_MS);

    if (flushed != NATS_OK && flushed != NATS_TIMEOUT) {
        cwist_jq__link_break(link);
        return false;
    }
    return true;
}

static cwist_jq__inbox *make_inbox(cwist_jq__link *link)
{
    cwist_jq__inbox *inbox = cwist_jq__calloc(1, sizeof *inbox);

    if (inbox == NULL) {
        return NULL;
    }
    (void)snprintf(inbox->subject, sizeof inbox->subject, "%s.%u", link->prefix,
                   atomic_fetch_add(&link->inbox_count, 1));
    (void)snprintf(inbox->reply, sizeof inbox->reply, "%s.0", inbox->subject);
    (void)snprintf(inbox->heard, sizeof inbox->heard, "%s.*", inbox->subject);
    if (natsConnection_SubscribeSync(&inbox->subscription, link->nc, inbox->heard) != NATS_OK) {
        cwist_jq__free(inbox);
        return NULL;
    }
    /* What comes was asked for, and is bounded there. libnats would drop what is over its limits.
     */
    (void)natsSubscription_SetPendingLimits(inbox->subscription, -1, -1);
    return inbox;
}

cwist_jq__inbox *cwist_jq__inbox_take(cwist_jq__link *link)
{
    cwist_jq__lock(&link->lock);
    cwist_jq__inbox *inbox = link->free_inboxes;
    if (inbox != NULL) {
        link->free_inboxes = inbox->next;
    }
    cwist_jq__unlock(&link->lock);
    return inbox != NULL ? inbox : make_inbox(link);
}

void cwist_jq__inbox_give(cwist_jq__link *link, cwist_jq__inbox *inbox, bool clean)
{
    if (!clean) {
        free_inbox(inbox);
        return;
    }
    cwist_jq__lock(&link->lock);
    inbox->next = link->free_inboxes;
    link->free_inboxes = inbox;
    cwist_jq__unlock(&link->lock);
}
