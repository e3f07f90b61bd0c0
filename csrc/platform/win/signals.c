/* Windows has no SIGPIPE. */
#include "platform/signals.h"

void cwist_jq__keep_sigpipe(void (*start)(void))
{
    start();
}

void cwist_jq__ignore_sigpipe(void)
{
    /* nothing to ignore */
}
