/* The loops of every benchmark program, and what is around them. */
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CACHE_LINE 64
#define PACE_NS                                                                                    \
    2000000 /* between two jobs for an idle worker: it has gone back to sleep by then              \
             */
#define VISIBILITY_MS 3600000

_Noreturn void bench_die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

uint64_t bench_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void bench_read(bench *b, const void *payload, size_t len)
{
    const unsigned char *bytes = payload;

    if (len != b->size) {
        bench_die(b->operation, "a payload of another length came");
    }
    for (size_t i = 0; i < len; i += CACHE_LINE) {
        b->digest ^= bytes[i];
    }
}

uint64_t bench_stamp(const void *payload, size_t len)
{
    uint64_t stamp = 0;

    if (len < sizeof stamp) {
        bench_die("wait", "the payload has no room for a stamp");
    }
    memcpy(&stamp, payload, sizeof stamp);
    return stamp;
}

void bench_address(const bench *b, char *host, size_t size, int *port)
{
    const char *from = strstr(b->url, "://");
    const char *colon = from != NULL ? strchr(from + 3, ':') : NULL;

    if (colon == NULL || (size_t)(colon - from) - 3 >= size) {
        bench_die("url", b->url);
    }
    (void)snprintf(host, size, "%.*s", (int)(colon - from - 3), from + 3);
    *port = atoi(colon + 1);
}

static size_t number(const char *text)
{
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);

    if (value == 0 || *end != '\0') {
        bench_die("not a number above 0", text);
    }
    return (size_t)value;
}

/* ---- the loops ---- */

static void enqueue(bench *b, const side *of)
{
    for (size_t i = 0; i < b->count; i++) {
        of->enqueue(b);
    }
}

static void enqueue_many(bench *b, const side *of)
{
    for (size_t left = b->count; left > 0;) {
        size_t now = left < b->depth ? left : b->depth;
        of->enqueue_many(b, now);
        left -= now;
    }
}

static void drain(bench *b, const side *of)
{
    for (size_t left = b->count; left > 0;) {
        size_t most = b->one_at_a_time ? 1 : b->depth;
        left -= of->take(b, left < most ? left : most);
    }
}

/* The last step claims nothing more and acks the rest. */
static void drain_next(bench *b, const side *of)
{
    for (size_t left = b->count; left > 0;) {
        left -= of->take_next(b, left < b->depth ? left : b->depth);
    }
    (void)of->take_next(b, 0);
}

static void add_slowly(bench *b, const side *of)
{
    const struct timespec pace = {0, PACE_NS};

    for (size_t i = 0; i < b->count; i++) {
        (void)nanosleep(&pace, NULL);
        uint64_t stamp = bench_now();
        memcpy(b->payload, &stamp, sizeof stamp);
        of->enqueue(b);
    }
}

/* Programs that run together start together: each says that it is ready, and waits for a line. */
static void wait_for_start(void)
{
    char line[8];

    (void)puts("ready");
    (void)fflush(stdout);
    (void)fgets(line, sizeof line, stdin);
}

static void print_latencies(bench *b, const side *of)
{
    for (size_t i = 0; i < b->count; i++) {
        uint64_t claimed = of->wait(b);
        uint64_t stamp = of->finish(b);
        (void)printf("%s%llu", i == 0 ? "{\"ns\": [" : ", ", (unsigned long long)(claimed - stamp));
    }
    (void)puts("]}");
}

static void print_time(bench *b, const side *of, void (*run)(bench *b, const side *of))
{
    uint64_t start = bench_now();

    run(b, of);
    if (of->settled != NULL) {
        of->settled(b);
    }
    (void)printf("{\"start\": %llu, \"end\": %llu}\n", (unsigned long long)start,
                 (unsigned long long)bench_now());
}

static const struct {
    const char *name;
    void (*run)(bench *b, const side *of); /* NULL: wait */
    bool one_at_a_time;
    bool tuned;
} LOOPS[] = {
    {"enqueue", enqueue, true, false},
    {"enqueue-many", enqueue_many, false, false},
    {"enqueue-many-tuned", enqueue_many, false, true},
    {"drain", drain, false, false},
    {"drain-tuned", drain, false, true},
    {"drain-one", drain, true, false},
    {"drain-next", drain_next, false, false},
    {"add", add_slowly, true, false},
    {"wait", NULL, true, false},
};

static void run_loop(bench *b, const side *of)
{
    size_t i = 0;

    while (i < sizeof LOOPS / sizeof *LOOPS && strcmp(b->operation, LOOPS[i].name) != 0) {
        i++;
    }
    if (i == sizeof LOOPS / sizeof *LOOPS) {
        bench_die("no such operation", b->operation);
    }
    b->one_at_a_time = LOOPS[i].one_at_a_time;
    b->tuned = LOOPS[i].tuned;
    of->open(b);
    wait_for_start();
    if (LOOPS[i].run != NULL) {
        print_time(b, of, LOOPS[i].run);
    } else {
        print_latencies(b, of);
    }
    of->close(b);
}

int bench_main(int argc, char **argv, const side *operations)
{
    if (argc != 7) {
        bench_die(argv[0], "say URL QUEUE OPERATION COUNT DEPTH SIZE");
    }
    bench b = {.url = argv[1],
               .queue = argv[2],
               .operation = argv[3],
               .count = number(argv[4]),
               .depth = number(argv[5]),
               .size = number(argv[6]),
               .visibility = VISIBILITY_MS};
    b.payload = malloc(b.size + sizeof(uint64_t));
    if (b.payload == NULL) {
        bench_die("payload", "out of memory");
    }
    for (size_t i = 0; i < b.size; i++) {
        b.payload[i] = (char)(i * 31 + 7);
    }
    run_loop(&b, operations);
    free(b.payload);
    return 0;
}
