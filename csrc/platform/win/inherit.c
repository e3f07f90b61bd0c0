/*
 * Windows: a program inherits handles only when it is started with bInheritHandles, which Python's
 * subprocess does not do by default. Handles cannot be tried one by one as descriptors can: asking
 * a pipe that another thread reads from would wait for that thread. So libnats' sockets are left as
 * they are; docs/platforms.md says so.
 */
#include <string.h>

#include "platform/inherit.h"

void cwist_jq__fds_snapshot(cwist_jq__fds *fds)
{
    memset(fds, 0, sizeof *fds);
}

void cwist_jq__close_on_exec(const cwist_jq__fds *before, int port)
{
    (void)before;
    (void)port;
}
