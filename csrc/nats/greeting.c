/*
 * The server's version. libnats 3.4 does not tell it, and no API reply of a plain account carries
 * it; but a NATS server greets every new TCP connection with a line that does.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/socket.h"

#define GREETING_MAX 32768
#define GREETING_WAIT_MS 1000
#define OLDEST_MAJOR 2
#define OLDEST_MINOR 9

/* Splits "scheme://user:pass@host:port". host is written to out without brackets. */
static int split_url(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    const char *at = strrchr(host, '@');
    host = at != NULL ? at + 1 : host;
    const char *colon = strrchr(host, ':');
    if (colon == NULL || colon == host) {
        return -1;
    }
    size_t len = (size_t)(colon - host);
    if (*host == '[' && len >= 2) {
        host++;
        len -= 2;
    }
    if (len >= size) {
        return -1;
    }
    memcpy(out, host, len);
    out[len] = '\0';
    long port = strtol(colon + 1, NULL, 10);
    return port > 0 && port <= 65535 ? (int)port : -1;
}

/* Reads up to the end of the first line; false when it does not come. */
static bool read_line(int fd, char *line, size_t size, uint64_t deadline)
{
    size_t used = 0;

    while (used + 1 < size && cwist_jq__wait_readable(fd, deadline) == 1) {
        long got = cwist_jq__recv_some(fd, line + used, size - 1 - used);
        if (got < 0) {
            return false;
        }
        used += (size_t)got;
        line[used] = '\0';
        if (memchr(line, '\n', used) != NULL) {
            return true;
        }
    }
    return false;
}

/*
 * libnats would encrypt where the server insists, and check the certificate as it was built to do.
 * Who wants that says so, and has our rules.
 */
static int judge_tls(cwist_jq__json info, bool encrypted)
{
    return encrypted || !cwist_jq__json_true(cwist_jq__json_member(info, "tls_required"))
               ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                                "the server takes encrypted connections only: write tls:// for "
                                "nats://");
}

static int judge(cwist_jq__nats *nats, const char *line, bool encrypted)
{
    const char *brace = strchr(line, '{');
    cwist_jq__json info = {brace, brace != NULL ? strlen(brace) : 0};
    char *version = nats->version;

    cwist_jq__json_copy(cwist_jq__json_member(info, "version"), version, sizeof nats->version);
    char *rest = NULL;
    long major = strtol(version, &rest, 10);
    long minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    nats->below_2_10 = major == 2 && minor < 10;
    nats->minor = major > 2 ? UINT_MAX : major == 2 ? (unsigned)minor : 0;
    if (version[0] == '\0' || major > OLDEST_MAJOR ||
        (major == OLDEST_MAJOR && minor >= OLDEST_MINOR)) {
        return judge_tls(info, encrypted);
    }
    return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                          "the NATS server is version %s; %d.%d or newer is needed", version,
                          OLDEST_MAJOR, OLDEST_MINOR);
}

int cwist_jq__check_greeting(cwist_jq__nats *nats, const char *url, bool encrypted,
                             uint64_t deadline)
{
    char host[256];
    int status = CWIST_SUCCESS;

    int port = split_url(url, host, sizeof host);
    char *line = cwist_jq__alloc(GREETING_MAX);
    uint64_t until = cwist_jq__earlier(deadline, cwist_jq__after_ms(GREETING_WAIT_MS));
    int fd = line != NULL && port > 0 ? cwist_jq__connect_tcp(host, port, until) : -1;

    if (line == NULL) {
        status = cwist_jq__no_memory();
    } else if (fd >= 0 && read_line(fd, line, GREETING_MAX, until)) {
        status = judge(nats, line, encrypted);
    }
    if (fd >= 0) {
        cwist_jq__socket_close(fd);
    }
    cwist_jq__free(line);
    return status;
}
