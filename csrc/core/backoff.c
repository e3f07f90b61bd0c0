/* When to try again: exponential, capped, and jittered so that clients do not march in step. */
#include "core/internal.h"
#include "platform/clock.h"

#define FIRST_MS 10u
#define CAP_MS 1000u

uint64_t cwist_jq__backoff_next(cwist_jq__backoff *backoff, uint64_t deadline)
{
    uint64_t most = CAP_MS;

    if (backoff->tries < 7 && (FIRST_MS << backoff->tries) < CAP_MS) {
        most = FIRST_MS << backoff->tries;
        backoff->tries++;
    }
    /* Between a half and the whole, in microseconds: spread, and never nothing. */
    uint64_t wait_us = most * 500 + cwist_jq__random() % (most * 500 + 1);
    return cwist_jq__earlier(cwist_jq__now() + wait_us * 1000, deadline);
}
