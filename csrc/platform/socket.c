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

int cwist_jq__send_parts(int fd, cwist_jq__part *parts, size_t count, uint64_t deadline,
                         size_t *sent)
{
    for (;;) {
        while (count > 0 && parts->len == 0) {
            parts++;
            count--;
        }
        if (count == 0) {
            return CWIST_SUCCESS;
        }
        long gone = cwist_jq__send_some_parts(fd, parts, count);
        int ready = gone == 0 ? cwist_jq__wait_writable(fd, deadline) : 1;
        if (gone < 0 || ready < 0) {
            return gone < 0 ? (int)gone : ready;
        }
        if (ready == 0) {
            return cwist_jq__fail(CWIST_ERROR_IO, "send: timed out");
        }
        *sent += (size_t)gone;
        for (size_t left = (size_t)gone; left > 0;) {
            size_t step = left < parts->len ? left : parts->len;
            parts->data = (const char *)parts->data + step;
            parts->len -= step;
            left -= step;
            if (parts->len == 0) {
                parts++;
                count--;
            }
        }
    }
}
