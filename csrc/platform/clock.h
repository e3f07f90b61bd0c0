/* Monotonic time, sleeping, and the time of day. */
#ifndef CWIST_JQ_CLOCK_H
#define CWIST_JQ_CLOCK_H

#include <stdint.h>

/* Nanoseconds of the monotonic clock; only differences mean anything. */
uint64_t cwist_jq__now(void);

/* Sleeps until the moment; signals do not end it. */
void cwist_jq__sleep_until(uint64_t when);

/* Milliseconds since 1970, to be shown to people: the clock may be set meanwhile. */
uint64_t cwist_jq__wall_ms(void);

#endif
