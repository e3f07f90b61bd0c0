#include "platform/detached.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core/internal.h"

/*
 * A libnats connect, TLS included, runs in it. musl gives a thread 128 KiB unless told otherwise,
 * and the host's name is looked up there too.
 */
#define STACK_SIZE (1024 * 1024)

typedef struct task {
    void (*run)(void *argument);
    void *argument;
} task;

static void *thread_main(void *given)
{
    task todo = *(task *)given;

    cwist_jq__free(given);
    todo.run(todo.argument);
    return NULL;
}

bool cwist_jq__start_detached(void (*run)(void *argument), void *argument)
{
    task *todo = cwist_jq__alloc(sizeof *todo);
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;

    if (todo == NULL) {
        return false;
    }
    *todo = (task){run, argument};
    if (pthread_attr_init(&attributes) != 0) {
        cwist_jq__free(todo);
        return false;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits the mask */
    bool started = pthread_create(&thread, &attributes, thread_main, todo) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (!started) {
        cwist_jq__free(todo);
    }
    return started;
}

bool cwist_jq__at_exit(void (*call)(void))
{
    return atexit(call) == 0;
}
