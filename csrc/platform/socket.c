/* What is the same for the sockets of every system. */
#include "platform/socket.h"

#include "core/internal.h"

int cwist_jq__send_all(int fd, const void *data, size_t len, uint64_t deadline)
{
    const char *at = data;
    const char *end = at + len;

    while (at < end) {
        long count = cwist_jq__send_some(fd, at, (size_t)(end - at));
        int ready = count == 0 ? cwist_jq__wait_writable(fd, deadline) : 1;
        if (count < 0 || ready < 0) {
            return count < 0 ? (int)count : ready;
        }
        if (ready == 0) {
            return cwist_jq__fail(CWIST_ERROR_IO, "send: timed out");
        }
        at += count;
    }
    return CWIST_SUCCESS;
}
