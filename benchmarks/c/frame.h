/*
 * What the benchmark programs share: the command line, the clock, the output. A program supplies
 * the operations of one side, each in the plainest right way; the loops around them are the same
 * for all sides.
 */
#ifndef CWIST_JQ_BENCH_FRAME_H
#define CWIST_JQ_BENCH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench {
    const char *url; /* redis://host:port or nats://host:port */
    const char *queue;
    const char *operation;
    size_t count;         /* jobs in all */
    size_t depth;         /* jobs in one step of a batch operation */
    size_t size;          /* bytes of a payload */
    char *payload;        /* what is enqueued */
    bool one_at_a_time;   /* the operation claims single jobs */
    bool tuned;           /* not the plainest loop, but the quickest known */
    uint64_t visibility;  /* ms */
    unsigned char digest; /* of the payloads that were read, so that reading them is work */
    void *state;          /* the side's own */
} bench;

/* Every operation succeeds or ends the program. */
typedef struct side {
    void (*open)(bench *b);
    void (*close)(bench *b);
    void (*enqueue)(bench *b);
    void (*enqueue_many)(bench *b, size_t count);
    size_t (*take)(bench *b, size_t most); /* claim up to `most`, read and ack them */
    size_t (*take_next)(bench *b,
                        size_t most); /* ack those of the last call, claim more: at once */
    uint64_t (*wait)(bench *b);       /* wait for one job: the time of the claim, the job is kept */
    uint64_t (*finish)(bench *b);     /* ack that job: the stamp in its payload */
    void (*settled)(bench *b);        /* nothing is left in a buffer; may be NULL */
} side;

int bench_main(int argc, char **argv, const side *operations);

/* Nanoseconds of the clock that all processes share. */
uint64_t bench_now(void);

/* Reads a payload: checks its length and looks at every cache line of it. */
void bench_read(bench *b, const void *payload, size_t len);

/* The stamp at the beginning of a payload. */
uint64_t bench_stamp(const void *payload, size_t len);

/* The host and port of the URL. */
void bench_address(const bench *b, char *host, size_t size, int *port);

_Noreturn void bench_die(const char *what, const char *why);

#endif
