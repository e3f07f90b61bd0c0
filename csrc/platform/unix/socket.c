/* Stream sockets of POSIX; Linux and BSD names for the options that differ. */
#if defined(__APPLE__)
#define _DARWIN_C_SOURCE /* SO_NOSIGPIPE and the times of TCP keep-alive are no part of POSIX */
#endif

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/internal.h"
#include "platform/clock.h"
#include "platform/socket.h"

#define IOV_AT_ONCE 64

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* there SO_NOSIGPIPE is set on the socket instead */
#endif

#ifdef TCP_KEEPIDLE
#define KEEP_IDLE TCP_KEEPIDLE
#else
#define KEEP_IDLE TCP_KEEPALIVE /* macOS */
#endif

static int io_error(const char *what, int error)
{
    char text[128];
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    const char *message = strerror_r(error, text, sizeof text);
#else
    const char *message = strerror_r(error, text, sizeof text) == 0 ? text : "unknown error";
#endif
    return cwist_jq__fail(CWIST_ERROR_IO, "%s: %s", what, message);
}

static void set_int(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/* A socket that is close-on-exec from its first moment where the system can do that. */
static int open_socket(int family)
{
#ifdef SOCK_CLOEXEC
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#else
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    }
#endif
    if (fd < 0) {
        return io_error("socket", errno);
    }
#ifdef SO_NOSIGPIPE
    set_int(fd, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
    if (family != AF_UNIX) {
        set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_int(fd, IPPROTO_TCP, KEEP_IDLE, 15);
        set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
        set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
    return fd;
}

/* Waits for an event. 1: it came, 0: the deadline did, or the cause as a negative code. */
static int wait_for(int fd, short events, uint64_t deadline)
{
    for (;;) {
        struct pollfd item = {fd, events, 0};
        uint64_t left = cwist_jq__ms_left(deadline);
        int count = poll(&item, 1, left > 60000 ? 60000 : (int)left);
        if (count > 0) {
            return 1;
        }
        if (count < 0 && errno != EINTR) {
            return io_error("poll", errno);
        }
        if (cwist_jq__passed(deadline)) {
            return 0;
        }
    }
}

/* Finishes one connect; gives the socket back or closes it. */
static int connect_to(const struct sockaddr *address, socklen_t len, uint64_t deadline)
{
    int fd = open_socket(address->sa_family);
    int error = 0;

    if (fd < 0) {
        return fd;
    }
    if (connect(fd, address, len) != 0) {
        error = errno;
    }
    if (error == EINPROGRESS || error == EINTR) {
        socklen_t size = sizeof error;
        int ready = wait_for(fd, POLLOUT, deadline);
        if (ready == 0) {
            error = ETIMEDOUT;
        } else if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
            error = errno;
        }
    }
    if (error != 0) {
        (void)close(fd);
        return io_error("connect", error);
    }
    return fd;
}

int cwist_jq__connect_tcp(const char *host, int port, uint64_t deadline)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char service[8];

    (void)snprintf(service, sizeof service, "%d", port);
    int failed = getaddrinfo(host, service, &hints, &list);
    if (failed != 0) {
        return cwist_jq__fail(CWIST_ERROR_IO, "cannot resolve %s: %s", host, gai_strerror(failed));
    }
    int fd = CWIST_ERROR_IO; /* a list has one address at least, and a failed connect says why */
    unsigned left = 0;
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        left++;
    }
    /* An address that swallows packets must leave time for those behind it. */
    for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next, left--) {
        fd = connect_to(at->ai_addr, at->ai_addrlen, cwist_jq__share_of_time(deadline, left));
    }
    freeaddrinfo(list);
    return fd;
}

int cwist_jq__connect_unix(const char *path, uint64_t deadline)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (len >= sizeof address.sun_path) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "the unix socket's path has %zu bytes; allowed: up to %zu", len,
                              sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, len + 1);
    return connect_to((const struct sockaddr *)&address, sizeof address, deadline);
}

long cwist_jq__send_some(int fd, const void *data, size_t len)
{
    for (;;) {
        ssize_t count = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count >= 0) {
            return (long)count;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return 0;
        }
        if (errno != EINTR) {
            return io_error("send", errno);
        }
    }
}

long cwist_jq__send_some_parts(int fd, const cwist_jq__part *parts, size_t count)
{
    struct iovec vector[IOV_AT_ONCE];
    struct msghdr message = {.msg_iov = vector};

    if (count == 1) {
        return cwist_jq__send_some(fd, parts->data, parts->len);
    }
    /* The type of the count differs between systems; a short one fits all. */
    unsigned short used = count < IOV_AT_ONCE ? (unsigned short)count : IOV_AT_ONCE;
    for (size_t i = 0; i < used; i++) {
        vector[i].iov_base = (void *)(uintptr_t)parts[i].data;
        vector[i].iov_len = parts[i].len;
    }
    message.msg_iovlen = used;
    for (;;) {
        ssize_t gone = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (gone >= 0) {
            return (long)gone;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return 0;
        }
        if (errno != EINTR) {
            return io_error("send", errno);
        }
    }
}

int cwist_jq__wait_writable(int fd, uint64_t deadline)
{
    return wait_for(fd, POLLOUT, deadline);
}

int cwist_jq__wait_readable(int fd, uint64_t deadline)
{
    return wait_for(fd, POLLIN, deadline);
}

/* A signal ends a wait: only the caller knows whether there is time for another one. */
static long receive(int fd, void *data, size_t cap, bool wait)
{
    for (;;) {
        ssize_t count = recv(fd, data, cap, wait ? 0 : MSG_DONTWAIT);
        if (count > 0) {
            return (long)count;
        }
        if (count == 0) {
            return cwist_jq__fail(CWIST_ERROR_IO, "the server closed the connection");
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK || (wait && errno == EINTR)) {
            return 0;
        }
        if (errno != EINTR) {
            return io_error("receive", errno);
        }
    }
}

long cwist_jq__recv_some(int fd, void *data, size_t cap)
{
    return receive(fd, data, cap, false);
}

/*
 * The socket blocks from then on; every other call says that it must not wait. Only Linux is sure
 * to heed that when it sends.
 */
void cwist_jq__recv_may_wait(int fd, unsigned ms)
{
#if defined(__linux__)
    struct timeval time = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0) {
        (void)fcntl(fd, F_SETFL, 0);
    }
#else
    (void)fd;
    (void)ms;
#endif
}

long cwist_jq__recv_wait(int fd, void *data, size_t cap)
{
    return receive(fd, data, cap, true);
}

bool cwist_jq__socket_is_idle(int fd)
{
    char byte;
    ssize_t count;

    do {
        count = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void cwist_jq__socket_close(int fd)
{
    int saved = errno;
    /* The peer must see the end even while a forked child holds a copy of the socket. */
    (void)shutdown(fd, SHUT_RDWR);
    (void)close(fd);
    errno = saved;
}
