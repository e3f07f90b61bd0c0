#include "platform/signals.h"

#include <signal.h>
#include <string.h>

void cwist_jq__keep_sigpipe(void (*start)(void))
{
    struct sigaction before;
    int known = sigaction(SIGPIPE, NULL, &before);

    start();
    if (known == 0) {
        (void)sigaction(SIGPIPE, &before, NULL);
    }
}

void cwist_jq__ignore_sigpipe(void)
{
    struct sigaction before;
    struct sigaction ignore;

    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    if (sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
        (void)sigaction(SIGPIPE, &ignore, NULL);
    }
}
