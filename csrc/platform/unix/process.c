/* Process facts from POSIX. */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise() is no part of POSIX */
#endif

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14; the headers of a build may be older than its system */
#endif
#endif

#include "platform/process.h"

/*
 * Every look-up of a handle asks for the id, and getpid() is a system call. So the id is kept, in
 * memory that the kernel clears in a forked child, however it was forked. A child that shares our
 * memory (vfork) reads its parent's id, which is right for what it shares: the parent's handles.
 */
typedef _Atomic(pid_t) kept_id; /* 0: not asked yet in this process */

static kept_id nowhere; /* stands for memory of that kind where the system has none */
static _Atomic(kept_id *) kept;

static kept_id *map_kept(void)
{
#if defined(__linux__)
    void *page =
        mmap(NULL, sizeof(kept_id), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return &nowhere;
    }
    /* An emulator that welcomes any advice follows none. */
    if (madvise(page, sizeof(kept_id), -1) != 0 &&
        madvise(page, sizeof(kept_id), MADV_WIPEONFORK) == 0) {
        return page;
    }
    (void)munmap(page, sizeof(kept_id));
#endif
    return &nowhere;
}

static void unmap_kept(kept_id *place)
{
#if defined(__linux__)
    if (place != &nowhere) {
        (void)munmap((void *)place, sizeof *place);
    }
#else
    (void)place;
#endif
}

/* The one place of this copy of the library, made by who asks first. It is never given back. */
static kept_id *kept_place(void)
{
    kept_id *place = atomic_load_explicit(&kept, memory_order_acquire);

    if (place == NULL) {
        kept_id *made = map_kept();
        if (atomic_compare_exchange_strong(&kept, &place, made)) {
            place = made;
        } else {
            unmap_kept(made);
        }
    }
    return place;
}

uint64_t cwist_jq__process_id(void)
{
    kept_id *place = kept_place();
    pid_t id = atomic_load_explicit(place, memory_order_relaxed);

    if (id == 0) {
        id = getpid();
        if (place != &nowhere) {
            atomic_store_explicit(place, id, memory_order_relaxed);
        }
    }
    return (uint64_t)id;
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
