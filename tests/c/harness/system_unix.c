#include "system.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

bool system_run_apart(const test *one, const char *program, const char *engine, unsigned seconds)
{
    (void)program;
    (void)engine;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(seconds);
        one->run();
        (void)fflush(NULL);
        exit(0); /* not _exit: leak checkers report here */
    }
    int state = 0;
    if (child < 0 || waitpid(child, &state, 0) != child) {
        perror("fork");
        return false;
    }
    if (WIFSIGNALED(state)) {
        (void)fprintf(stderr, "%s: ended by signal %d\n", one->name, WTERMSIG(state));
    }
    return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

struct harness_thread {
    pthread_t thread;
    void (*run)(void *argument);
    void *argument;
};

static void *thread_main(void *given)
{
    harness_thread *self = given;

    self->run(self->argument);
    return NULL;
}

harness_thread *harness_thread_start(void (*run)(void *argument), void *argument)
{
    harness_thread *self = malloc(sizeof *self);

    CHECK(self != NULL);
    self->run = run;
    self->argument = argument;
    CHECK(pthread_create(&self->thread, NULL, thread_main, self) == 0);
    return self;
}

void harness_thread_join(harness_thread *thread)
{
    CHECK(pthread_join(thread->thread, NULL) == 0);
    free(thread);
}
