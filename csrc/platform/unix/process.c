/* Process facts from POSIX. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "platform/clock.h"
#include "platform/process.h"

uint64_t cwist_jq__process_id(void)
{
    return (uint64_t)getpid();
}

void cwist_jq__host_name(char *out, size_t size)
{
    if (gethostname(out, size) != 0 || memchr(out, '\0', size) == NULL) {
        out[size - 1] = '\0';
    }
    if (out[0] == '\0') {
        (void)memcpy(out, "host", size < 5 ? 1 : 5);
    }
}

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
