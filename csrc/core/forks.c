/* State that belongs to one process, and is begun anew in a forked child. */
#include "core/internal.h"
#include "platform/process.h"

/* Set while a thread of that process takes over. A child forked meanwhile does not wait for it. */
#define CHANGING (UINT64_C(1) << 63)

void cwist_jq__enter_process(_Atomic uint64_t *owner, void (*start_anew)(void))
{
    uint64_t self = cwist_jq__process_id();
    uint64_t seen = atomic_load_explicit(owner, memory_order_acquire);

    while (seen != self) {
        if (seen == (self | CHANGING)) {
            seen = atomic_load_explicit(owner, memory_order_acquire);
        } else if (atomic_compare_exchange_strong(owner, &seen, self | CHANGING)) {
            if (seen != 0) {
                start_anew();
            }
            atomic_store_explicit(owner, self, memory_order_release);
            seen = self;
        }
    }
}
