/* Threads that nobody waits for, and their end. */
#ifndef CWIST_JQ_DETACHED_H
#define CWIST_JQ_DETACHED_H

#include <stdbool.h>

/*
 * Runs run(argument) in a thread of its own with all signals blocked, so that neither it nor a
 * thread that it starts ever takes a signal from the program. False when none could be started.
 */
bool cwist_jq__start_detached(void (*run)(void *argument), void *argument);

/*
 * Has a function called when the program ends in an orderly way or unloads the library, for
 * threads that are to end before what they use. True: it will be called, or need not be, because
 * the system ends threads first.
 */
bool cwist_jq__at_exit(void (*call)(void));

#endif
