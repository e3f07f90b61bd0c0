/*
 * Non-blocking stream sockets with deadlines. They are close-on-exec from birth, keep the peer
 * checked (TCP keep-alive) and never raise SIGPIPE. A deadline is a moment of cwist_jq__now().
 * Every failing function returns a negative code with the cause set.
 */
#ifndef CWIST_JQ_SOCKET_H
#define CWIST_JQ_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tries every address of the name. Returns the socket. */
int cwist_jq__connect_tcp(const char *host, int port, uint64_t deadline);
int cwist_jq__connect_unix(const char *path, uint64_t deadline);

/* Sends all. */
int cwist_jq__send_all(int fd, const void *data, size_t len, uint64_t deadline);

/* Sends what goes out now. Returns the count (0: nothing now). */
long cwist_jq__send_some(int fd, const void *data, size_t len);

/* Bytes that follow others on the wire. */
typedef struct cwist_jq__part {
    const void *data;
    size_t len;
} cwist_jq__part;

/* Sends all parts, which it may change; *sent is raised by what left, on failure too. */
int cwist_jq__send_parts(int fd, cwist_jq__part *parts, size_t count, uint64_t deadline,
                         size_t *sent);

/* Sends of the parts what goes out now. Returns the count (0: nothing now). */
long cwist_jq__send_some_parts(int fd, const cwist_jq__part *parts, size_t count);

/* Waits until something can be sent. Returns 1 when it can, 0 at the deadline. */
int cwist_jq__wait_writable(int fd, uint64_t deadline);

/* Waits for data. Returns 1 when some can be read (or the end of the stream), 0 at the deadline. */
int cwist_jq__wait_readable(int fd, uint64_t deadline);

/* Reads what is there, at most cap. Returns the count (0: nothing now); IO when the peer is gone.
 */
long cwist_jq__recv_some(int fd, void *data, size_t cap);

/* Lets recv_wait() wait so long. A system without that lets it wait not at all. */
void cwist_jq__recv_may_wait(int fd, unsigned ms);
/* As recv_some(), but it waits a while for the first byte, or until a signal comes. */
long cwist_jq__recv_wait(int fd, void *data, size_t cap);

/* True when the peer has neither closed the idle connection nor sent something unasked. */
bool cwist_jq__socket_is_idle(int fd);

void cwist_jq__socket_close(int fd);

#endif
