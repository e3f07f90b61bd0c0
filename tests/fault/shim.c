/*
 * Loaded before the system's library into programs of the fault tests: a clock that can be set, and
 * a name that can be lost. Nothing else of the machine sees either.
 *
 * queue.test is the loopback address, unless names are lost. CWIST_TEST_CLOCK holds the seconds by
 * which the clock is wrong from the start.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* No machine runs so long that its monotonic clock comes here. */
#define MONOTONIC_ENDS 1000000000

static _Atomic long wrong_by;
static atomic_bool names_lost;
static atomic_int lookups;

void shim_set_clock(long seconds)
{
    wrong_by = seconds;
}

void shim_lose_names(int lost)
{
    names_lost = lost != 0;
}

int shim_lookups(void)
{
    return lookups;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("CWIST_TEST_CLOCK");

    wrong_by = text != NULL ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long failed = syscall(SYS_clock_gettime, clock, now);

    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += wrong_by;
    }
    return (int)failed;
}

time_t time(time_t *out)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* Whoever waits until a moment of the wrong clock waits as long as he meant to. */
typedef int (*waiter)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    waiter next = (waiter)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec right = *until;

    if (right.tv_sec > MONOTONIC_ENDS) {
        right.tv_sec -= wrong_by;
    }
    return next(cond, mutex, &right);
}

typedef int (*resolver)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict list)
{
    resolver next = (resolver)dlsym(RTLD_NEXT, "getaddrinfo");

    if (node != NULL && strcmp(node, "queue.test") == 0) {
        lookups++;
        if (names_lost) {
            return EAI_AGAIN;
        }
        node = "127.0.0.1";
    }
    return next(node, service, hints, list);
}
