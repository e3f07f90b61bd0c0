#include "platform/detached.h"

#include <pthread.h>
#include <signal.h>

#include "core/internal.h"

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
    pthread_t thread;
    sigset_t all;
    sigset_t before;

    if (todo == NULL) {
        return false;
    }
    todo->run = run;
    todo->argument = argument;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits the mask */
    bool started = pthread_create(&thread, NULL, thread_main, todo) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) {
        (void)pthread_detach(thread);
    } else {
        cwist_jq__free(todo);
    }
    return started;
}
