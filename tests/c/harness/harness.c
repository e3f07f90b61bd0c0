#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/internal.h"
#include "platform/clock.h"
#include "platform/process.h"
#include "system.h"

#define TEST_SECONDS 60
#define SKIPPED 77

static const char *server = ""; /* the first argument of the program */

/* ---- checks ---- */

_Noreturn void harness_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    (void)fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fprintf(stderr, "\n    last error: %s\n", cwist_job_last_error());
    (void)fflush(NULL);
    _Exit(1);
}

void harness_check_int(const char *file, int line, const char *text, long long want, long long got)
{
    if (want != got) {
        harness_fail(file, line, "%s is %lld, not %lld", text, got, want);
    }
}

void harness_check_str(const char *file, int line, const char *text, const char *want,
                       const char *got)
{
    if (want == NULL || got == NULL ? want != got : strcmp(want, got) != 0) {
        harness_fail(file, line, "%s is \"%s\", not \"%s\"", text, got != NULL ? got : "(null)",
                     want != NULL ? want : "(null)");
    }
}

void harness_check_code(const char *file, int line, const char *text, int want, cwist_error_t got)
{
    if (got.errtype != CWIST_ERR_INT16 || got.error.err_i16 != want) {
        harness_fail(file, line, "%s gave %s, not %s", text,
                     cwist_job_error_name(cwist_job_error_code(&got)), cwist_job_error_name(want));
    }
}

void harness_check_contains(const char *file, int line, const char *want, const char *got)
{
    if (strstr(got, want) == NULL) {
        harness_fail(file, line, "the text has no \"%s\": %s", want, got);
    }
}

/* ---- running ---- */

/* The kinds of server that a program may be told. */
typedef struct kind {
    const char *name;
    const char *engine;
    const char *variable; /* where the URL stands */
    const char *url;      /* instead of that: there is no server */
} kind;

/* The kind of that name; NULL: none. */
static const kind *kind_of(const char *name)
{
    static const kind known[] = {{"redis", "redis", "CWIST_TEST_REDIS_URL", NULL},
                                 {"nats", "nats", "CWIST_TEST_NATS_URL", NULL},
                                 {"rediss", "redis", "CWIST_TEST_REDISS_URL", NULL},
                                 {"tls", "nats", "CWIST_TEST_TLS_URL", NULL},
                                 {"memory", "memory", NULL, "memory://tests"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) == 0) {
            return &known[i];
        }
    }
    return NULL;
}

int harness_main(int argc, char **argv, const test *tests, size_t count)
{
    int failed = 0;
    int ran = 0;
    int first = 1;
    bool here = false;

    if (argc > 1 && kind_of(argv[1]) != NULL) {
        server = argv[1];
        first = 2;
        (void)harness_url();
    }
    if (first < argc && strcmp(argv[first], HARNESS_HERE) == 0) {
        here = true;
        first++;
    }
    for (size_t i = 0; i < count; i++) {
        bool wanted = first >= argc;
        for (int at = first; at < argc; at++) {
            wanted = wanted || strcmp(argv[at], tests[i].name) == 0;
        }
        ran += wanted ? 1 : 0;
        if (wanted && here) {
            tests[i].run();
        } else if (wanted) {
            bool passed = system_run_apart(&tests[i], argv[0], server, TEST_SECONDS);
            (void)printf("%s %s\n", passed ? "ok    " : "FAILED", tests[i].name);
            failed += passed ? 0 : 1;
        }
    }
    if (ran == 0) {
        (void)fprintf(stderr, "no test has such a name\n");
    }
    return failed != 0 || ran == 0 ? 1 : 0;
}

/* ---- servers ---- */

const char *harness_engine(void)
{
    const kind *told = kind_of(server);
    return told != NULL ? told->engine : "redis";
}

const char *harness_url(void)
{
    const kind *told = kind_of(server);
    if (told != NULL && told->url != NULL) {
        return told->url;
    }
    const char *url = getenv(told != NULL ? told->variable : "CWIST_TEST_REDIS_URL");
    if (url == NULL || *url == '\0') {
        const char *strict = getenv("CWIST_TEST_REQUIRE_DURABLE_QUEUE");
        bool required = strict != NULL && *strict != '\0' && strcmp(strict, "0") != 0;
        (void)fprintf(stderr, "no %s server was given%s\n", server,
                      required ? ", and CWIST_TEST_REQUIRE_DURABLE_QUEUE asks for it"
                               : "; skipped");
        exit(required ? 1 : SKIPPED);
    }
    return url;
}

/* The private servers keep nothing and are told so at every connection; these tests need no log. */
static void no_log(void *context, int level, const char *text)
{
    (void)context;
    (void)level;
    (void)text;
}

cwist_job_conn_t *harness_connect(void)
{
    cwist_job_conn_t *conn = NULL;
    cwist_job_conn_opts_t opts;

    cwist_job_conn_opts_init(&opts);
    opts.log = no_log;
    CHECK_OK(cwist_job_conn_open(&conn, harness_url(), &opts));
    return conn;
}

const char *harness_queue_name(void)
{
    static char name[64];
    static unsigned count;
    (void)snprintf(name, sizeof name, "t-%llu-%u-%llu", (unsigned long long)cwist_jq__process_id(),
                   count++, (unsigned long long)harness_now_ms());
    return name;
}

cwist_job_queue_t *harness_queue(cwist_job_conn_t *conn, cwist_job_queue_opts_t opts)
{
    cwist_job_queue_t *queue = NULL;
    if (opts.name == NULL) {
        opts.name = harness_queue_name();
    }
    CHECK_OK(cwist_job_queue_open(&queue, conn, &opts));
    return queue;
}

static cwist_job_conn_t *conn_of_queue;

cwist_job_queue_t *harness_open_ext(cwist_job_queue_opts_t opts, cwist_job_queue_ext_opts_t ext)
{
    cwist_job_queue_t *queue = NULL;

    conn_of_queue = harness_connect();
    opts.name = opts.name != NULL ? opts.name : harness_queue_name();
    ext.struct_size = sizeof ext;
    CHECK_OK(cwist_job_queue_open_ext(&queue, conn_of_queue, &opts, &ext));
    return queue;
}

cwist_job_queue_t *harness_open(cwist_job_queue_opts_t opts)
{
    conn_of_queue = harness_connect();
    return harness_queue(conn_of_queue, opts);
}

void harness_close(cwist_job_queue_t *queue)
{
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn_of_queue);
    CHECK_INT(0, cwist_job_live_handles());
}

bool harness_has_delays(void)
{
    cwist_job_item_t item = {.payload = "later", .len = 5, .delay_ms = 3600000};
    cwist_job_queue_t *queue = harness_open((cwist_job_queue_opts_t){0});
    cwist_error_t error = cwist_job_queue_enqueue_item(queue, &item, NULL);
    uint64_t count = 0;

    bool has = cwist_job_error_code(&error) == CWIST_SUCCESS;
    if (!has) {
        CHECK_STR("nats", harness_engine());
        CHECK_CODE(CWIST_ERROR_UNSUPPORTED, error);
        CHECK_TEXT("2.12 or newer");
    }
    CHECK_OK(cwist_job_queue_purge(queue, &count));
    CHECK_INT(has ? 1 : 0, count);
    harness_close(queue);
    return has;
}

cwist_job_t *harness_claim(cwist_job_queue_t *queue)
{
    cwist_job_t *job = NULL;
    CHECK_OK(cwist_job_queue_claim(queue, 5000, &job));
    CHECK(job != NULL);
    return job;
}

void harness_no_job(cwist_job_queue_t *queue)
{
    cwist_job_t *job = NULL;
    CHECK_CODE(CWIST_ERROR_TIMEOUT, cwist_job_queue_claim(queue, 0, &job));
    CHECK(job == NULL);
}

uint64_t harness_dead_count(cwist_job_queue_t *queue)
{
    uint64_t count = 0;
    CHECK_OK(cwist_job_queue_dead_count(queue, &count));
    return count;
}

void harness_payload_is(const cwist_job_t *job, const char *want)
{
    size_t len = 0;
    const void *payload = cwist_job_payload(job, &len);
    CHECK(payload != NULL);
    CHECK_INT(strlen(want), len);
    CHECK(memcmp(payload, want, len) == 0);
}

uint64_t harness_now_ms(void)
{
    return cwist_jq__now() / CWIST_JQ_MS;
}

void harness_pass_ms(unsigned ms)
{
    cwist_jq__sleep_until(cwist_jq__after_ms(ms));
}
