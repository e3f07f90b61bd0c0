#include "core/internal.h"
#include "platform/clock.h"
#include "platform/process.h"

/* splitmix64 over clock, process and a counter: cheap, without a lock, different after a fork. */
uint64_t cwist_jq__random(void)
{
    static _Atomic uint64_t counter;
    uint64_t x = cwist_jq__now() ^ cwist_jq__process_id() << 40 ^
                 atomic_fetch_add(&counter, 1) * UINT64_C(0x9E3779B97F4A7C15);

    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}
