/*
 * Stream sockets of Winsock. A SOCKET is kept in an int: of a Windows handle only the lower 32 bits
 * are significant ("Interprocess Communication Between 32-bit and 64-bit Applications", Microsoft),
 * and it is widened with its sign, so that INVALID_SOCKET stays what it is.
 */
#include "platform/socket.h"

#include <limits.h>
#include <stdio.h>

#include "core/internal.h"
#include "platform/clock.h"
#include "platform/win/error.h"
#include "platform/win/windows.h"

#define KEEP_IDLE_MS 15000
#define KEEP_INTERVAL_MS 5000
#define LONGEST_WAIT_MS 60000
#define SEND_MAX (1024 * 1024) /* Windows copies a whole send, or fails with WSAENOBUFS */

typedef enum event { READABLE, WRITABLE } event;

static SOCKET socket_of(int fd)
{
    return (SOCKET)(INT_PTR)fd;
}

/* Winsock must be started once in a process; it is never stopped, because others may use it too. */
static BOOL CALLBACK start_winsock(PINIT_ONCE once, PVOID argument, PVOID *context)
{
    WSADATA data;

    (void)once;
    (void)argument;
    (void)context;
    return WSAStartup(MAKEWORD(2, 2), &data) == 0;
}

static bool winsock_runs(void)
{
    static INIT_ONCE once = INIT_ONCE_STATIC_INIT;

    return InitOnceExecuteOnce(&once, start_winsock, NULL, NULL) != 0;
}

/* Checks the peer of a quiet connection as the POSIX sockets do. */
static void keep_alive(SOCKET s)
{
    struct tcp_keepalive times = {1, KEEP_IDLE_MS, KEEP_INTERVAL_MS};
    DWORD written = 0;

    (void)WSAIoctl(s, SIO_KEEPALIVE_VALS, &times, sizeof times, NULL, 0, &written, NULL, NULL);
}

/* A non-blocking socket that no program started later inherits. */
static int open_socket(int family)
{
    u_long on = 1;
    BOOL no_delay = TRUE;
    SOCKET s = WSASocketW(family, SOCK_STREAM, IPPROTO_TCP, NULL, 0,
                          WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);

    if (s == INVALID_SOCKET) {
        return cwist_jq__win_io_error("socket", WSAGetLastError());
    }
    if (ioctlsocket(s, (long)FIONBIO, &on) != 0) {
        int error = WSAGetLastError();
        (void)closesocket(s);
        return cwist_jq__win_io_error("socket", error);
    }
    (void)setsockopt(s, IPPROTO_TCP, TCP_NODELAY, (const char *)&no_delay, sizeof no_delay);
    keep_alive(s);
    return (int)(INT_PTR)s;
}

/*
 * Waits for an event. 1: it came, 0: the deadline did, or the cause as a negative code. It is
 * select(), because WSAPoll() of older systems never tells that a connect failed. Who reads is not
 * told of exceptions: urgent data is one, which nobody takes, and the wait would end at once again.
 */
static int wait_for(int fd, event wanted, uint64_t deadline)
{
    for (;;) {
        fd_set set;
        fd_set failed;
        uint64_t left = cwist_jq__ms_left(deadline);
        long ms = left > LONGEST_WAIT_MS ? LONGEST_WAIT_MS : (long)left;
        struct timeval timeout = {ms / 1000, ms % 1000 * 1000};

        FD_ZERO(&set);
        FD_ZERO(&failed);
        FD_SET(socket_of(fd), &set);
        FD_SET(socket_of(fd), &failed);
        int count = wanted == READABLE ? select(0, &set, NULL, NULL, &timeout)
                                       : select(0, NULL, &set, &failed, &timeout);
        if (count > 0) {
            return 1;
        }
        if (count < 0) {
            return cwist_jq__win_io_error("select", WSAGetLastError());
        }
        if (cwist_jq__passed(deadline)) {
            return 0;
        }
    }
}

/* The socket's own error, 0 for none. */
static int pending_error(int fd)
{
    int error = 0;
    int size = sizeof error;

    if (getsockopt(socket_of(fd), SOL_SOCKET, SO_ERROR, (char *)&error, &size) != 0) {
        error = WSAGetLastError();
    }
    return error;
}

/* Finishes one connect; gives the socket back or closes it. */
static int connect_to(const struct addrinfo *to, uint64_t deadline)
{
    int fd = open_socket(to->ai_family);
    int error = 0;

    if (fd < 0) {
        return fd;
    }
    if (connect(socket_of(fd), to->ai_addr, (int)to->ai_addrlen) != 0) {
        error = WSAGetLastError();
    }
    if (error == WSAEWOULDBLOCK) {
        int ready = wait_for(fd, WRITABLE, deadline);
        if (ready < 0) {
            (void)closesocket(socket_of(fd));
            return ready;
        }
        error = ready == 0 ? WSAETIMEDOUT : pending_error(fd);
    }
    if (error != 0) {
        (void)closesocket(socket_of(fd));
        return cwist_jq__win_io_error("connect", error);
    }
    return fd;
}

int cwist_jq__connect_tcp(const char *host, int port, uint64_t deadline)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char service[16];
    char what[280];

    if (!winsock_runs()) {
        return cwist_jq__fail(CWIST_ERROR_IO, "Winsock 2.2 cannot be started");
    }
    (void)snprintf(service, sizeof service, "%d", port);
    int failed = getaddrinfo(host, service, &hints, &list);
    if (failed != 0) {
        (void)snprintf(what, sizeof what, "cannot resolve %s", host);
        return cwist_jq__win_io_error(what, failed);
    }
    int fd = CWIST_ERROR_IO; /* a list has one address at least, and a failed connect says why */
    unsigned left = 0;
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        left++;
    }
    /* An address that swallows packets must leave time for those behind it. */
    for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next, left--) {
        fd = connect_to(at, cwist_jq__share_of_time(deadline, left));
    }
    freeaddrinfo(list);
    return fd;
}

int cwist_jq__connect_unix(const char *path, uint64_t deadline)
{
    (void)path;
    (void)deadline;
    return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                          "unix sockets are not supported on Windows; use redis://HOST:PORT");
}

long cwist_jq__send_some(int fd, const void *data, size_t len)
{
    int count = send(socket_of(fd), data, len > SEND_MAX ? SEND_MAX : (int)len, 0);

    if (count >= 0) {
        return count;
    }
    int error = WSAGetLastError();
    return error == WSAEWOULDBLOCK ? 0 : cwist_jq__win_io_error("send", error);
}

long cwist_jq__send_some_parts(int fd, const cwist_jq__part *parts, size_t count)
{
    (void)count; /* the others follow by themselves */
    return cwist_jq__send_some(fd, parts->data, parts->len);
}

int cwist_jq__wait_writable(int fd, uint64_t deadline)
{
    return wait_for(fd, WRITABLE, deadline);
}

int cwist_jq__wait_readable(int fd, uint64_t deadline)
{
    return wait_for(fd, READABLE, deadline);
}

long cwist_jq__recv_some(int fd, void *data, size_t cap)
{
    int count = recv(socket_of(fd), data, cap > INT_MAX ? INT_MAX : (int)cap, 0);

    if (count > 0) {
        return count;
    }
    if (count == 0) {
        return cwist_jq__fail(CWIST_ERROR_IO, "the server closed the connection");
    }
    int error = WSAGetLastError();
    return error == WSAEWOULDBLOCK ? 0 : cwist_jq__win_io_error("receive", error);
}

void cwist_jq__recv_may_wait(int fd, unsigned ms)
{
    (void)fd;
    (void)ms;
}

long cwist_jq__recv_wait(int fd, void *data, size_t cap)
{
    return cwist_jq__recv_some(fd, data, cap);
}

bool cwist_jq__socket_is_idle(int fd)
{
    char byte;
    int count = recv(socket_of(fd), &byte, 1, MSG_PEEK);

    return count < 0 && WSAGetLastError() == WSAEWOULDBLOCK;
}

void cwist_jq__socket_close(int fd)
{
    int saved = WSAGetLastError();

    (void)shutdown(socket_of(fd), SD_BOTH);
    (void)closesocket(socket_of(fd));
    WSASetLastError(saved);
}
