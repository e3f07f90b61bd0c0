/*
 * Descriptors that become close-on-exec after their birth. A program started by another thread in
 * between still inherits them; docs/states.md says so.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/inherit.h"

#define FD_LIMIT (CWIST_JQ_FD_WORDS * 64)

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

void cwist_jq__fds_snapshot(cwist_jq__fds *fds)
{
    memset(fds, 0, sizeof *fds);
    for (int fd = 0; fd < FD_LIMIT; fd++) {
        if (is_open(fd)) {
            fds->words[fd / 64] |= UINT64_C(1) << (fd % 64);
        }
    }
}

static int peer_port(int fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;

    memset(&peer, 0, sizeof peer);
    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0) {
        return -1;
    }
    if (peer.ss_family == AF_INET) {
        return ntohs(((const struct sockaddr_in *)&peer)->sin_port);
    }
    if (peer.ss_family == AF_INET6) {
        return ntohs(((const struct sockaddr_in6 *)&peer)->sin6_port);
    }
    return -1;
}

void cwist_jq__close_on_exec(const cwist_jq__fds *before, int port)
{
    for (int fd = 0; fd < FD_LIMIT; fd++) {
        bool old = (before->words[fd / 64] >> (fd % 64) & 1) != 0;
        int flags = old ? -1 : fcntl(fd, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0 && peer_port(fd) == port) {
            (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
    }
}
