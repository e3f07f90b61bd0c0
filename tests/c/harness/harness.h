/*
 * A small test harness. Every test runs in a process of its own, so that a crash or a hang is one
 * failure and not the end of the run. Checks hold in every build and print both values.
 */
#ifndef CWIST_JQ_HARNESS_H
#define CWIST_JQ_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cwist/sys/job/durable_queue_ext.h>

#include "platform/compiler.h"

typedef struct test {
    const char *name;
    void (*run)(void);
} test;

/* Whether ThreadSanitizer watches the test. */
#if defined(__SANITIZE_THREAD__)
#define HARNESS_TSAN true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HARNESS_TSAN true
#endif
#endif
#ifndef HARNESS_TSAN
#define HARNESS_TSAN false
#endif

/* Runs the tests named on the command line, or all. The program's result. */
int harness_main(int argc, char **argv, const test *tests, size_t count);

#define TEST_MAIN(...)                                                                             \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const test tests[] = {__VA_ARGS__};                                                 \
        return harness_main(argc, argv, tests, sizeof tests / sizeof *tests);                      \
    }

/* ---- checks ---- */

_Noreturn void harness_fail(const char *file, int line, const char *format, ...)
    CWIST_JQ_PRINTF(3, 4);

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : harness_fail(__FILE__, __LINE__, "not so: %s", #condition))

void harness_check_int(const char *file, int line, const char *text, long long want, long long got);
void harness_check_str(const char *file, int line, const char *text, const char *want,
                       const char *got);
void harness_check_code(const char *file, int line, const char *text, int want, cwist_error_t got);
void harness_check_contains(const char *file, int line, const char *want, const char *got);

#define CHECK_INT(want, got)                                                                       \
    harness_check_int(__FILE__, __LINE__, #got, (long long)(want), (long long)(got))
#define CHECK_STR(want, got) harness_check_str(__FILE__, __LINE__, #got, want, got)
#define CHECK_CODE(want, got) harness_check_code(__FILE__, __LINE__, #got, want, got)
#define CHECK_OK(got) CHECK_CODE(CWIST_SUCCESS, got)
/* The thread's error text holds these words. */
#define CHECK_TEXT(want) harness_check_contains(__FILE__, __LINE__, want, cwist_job_last_error())

/* ---- threads ---- */

typedef struct harness_thread harness_thread;

/* Starts a thread; join waits for its end and frees what start gave. */
harness_thread *harness_thread_start(void (*run)(void *argument), void *argument);
void harness_thread_join(harness_thread *thread);

/* ---- servers ---- */

/*
 * "redis", "nats" or "memory". The program's first argument says which, or, encrypted, "rediss" or
 * "tls".
 */
const char *harness_engine(void);

/*
 * The URL of the private server of the engine, or of a store in memory; ends the test program as
 * skipped without a server.
 */
const char *harness_url(void);

/* A connection, and a queue of a new name on it with these options (name may be NULL). */
cwist_job_conn_t *harness_connect(void);
cwist_job_queue_t *harness_queue(cwist_job_conn_t *conn, cwist_job_queue_opts_t opts);
/* A queue name that no other test uses; static per call site is not needed: it is never freed. */
const char *harness_queue_name(void);

/*
 * A queue with a connection of its own. harness_close() ends both, and fails the test when a handle
 * is left.
 */
cwist_job_queue_t *harness_open(cwist_job_queue_opts_t opts);
/* The same with further options, whose struct_size is set here. */
cwist_job_queue_t *harness_open_ext(cwist_job_queue_opts_t opts, cwist_job_queue_ext_opts_t ext);
void harness_close(cwist_job_queue_t *queue);

/* Claims a job within 5 s; fails the test when none comes. */
cwist_job_t *harness_claim(cwist_job_queue_t *queue);
/* Fails the test when a job can be claimed now. */
void harness_no_job(cwist_job_queue_t *queue);
uint64_t harness_dead_count(cwist_job_queue_t *queue);
/* Fails the test unless the payload is this text. */
void harness_payload_is(const cwist_job_t *job, const char *want);

/*
 * Whether the server has delayed jobs and can be paused. A NATS server before 2.12 says that it
 * cannot delay, and which version could, and stores nothing; else the test fails.
 */
bool harness_has_delays(void);

/* Milliseconds of the monotonic clock. */
uint64_t harness_now_ms(void);

/* Lets time pass, where time itself is what is tested. */
void harness_pass_ms(unsigned ms);

#endif
