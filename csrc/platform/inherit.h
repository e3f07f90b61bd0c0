/*
 * Keeps the sockets of another library from the programs that are started later. libnats makes
 * sockets that those inherit, and does not show them. So they are found: what is new among the
 * descriptors after a connect and leads to the server's port is one of them.
 */
#ifndef CWIST_JQ_INHERIT_H
#define CWIST_JQ_INHERIT_H

#include <stdint.h>

#define CWIST_JQ_FD_WORDS 64

/* The descriptors that were open at a moment. */
typedef struct cwist_jq__fds {
    uint64_t words[CWIST_JQ_FD_WORDS];
} cwist_jq__fds;

void cwist_jq__fds_snapshot(cwist_jq__fds *fds);

/* Marks the sockets that are new since the snapshot and lead to this port as not inherited. */
void cwist_jq__close_on_exec(const cwist_jq__fds *before, int port);

#endif
