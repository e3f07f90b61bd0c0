/* A thread that nobody waits for. */
#ifndef CWIST_JQ_DETACHED_H
#define CWIST_JQ_DETACHED_H

#include <stdbool.h>

/*
 * Runs run(argument) in a thread of its own with all signals blocked, so that neither it nor a
 * thread that it starts ever takes a signal from the program. False when none could be started.
 */
bool cwist_jq__start_detached(void (*run)(void *argument), void *argument);

#endif
