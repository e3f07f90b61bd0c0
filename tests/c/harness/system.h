/* What the harness needs of the system beyond the library's own platform code. */
#ifndef CWIST_JQ_SYSTEM_H
#define CWIST_JQ_SYSTEM_H

#include "harness.h"

/*
 * Runs one test in a process of its own and waits for it, at most so many seconds. True when the
 * process ended well. Where there is no fork, `program` is started with `engine` (may be ""),
 * HARNESS_HERE and the test's name.
 */
bool system_run_apart(const test *one, const char *program, const char *engine, unsigned seconds);

/* Runs the test in this process, and nothing else. */
#define HARNESS_HERE "--here"

#endif
