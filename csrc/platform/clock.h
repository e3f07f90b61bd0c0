/* Monotonic time and sleeping. */
#ifndef CWIST_JQ_CLOCK_H
#define CWIST_JQ_CLOCK_H

#include <stdint.h>

/* Nanoseconds of the monotonic clock; only differences mean anything. */
uint64_t cwist_jq__now(void);

/* Sleeps until the moment; signals do not end it. */
void cwist_jq__sleep_until(uint64_t when);

#endif
