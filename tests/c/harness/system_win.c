#include "system.h"

#include <process.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform/win/windows.h"

bool system_run_apart(const test *one, const char *program, const char *engine, unsigned seconds)
{
    char command[1024];
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    DWORD code = 1;

    (void)snprintf(command, sizeof command, "\"%s\" %s %s %s", program, engine, HARNESS_HERE,
                   one->name);
    (void)fflush(NULL);
    if (!CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) {
        (void)fprintf(stderr, "%s: cannot be started: %lu\n", one->name, GetLastError());
        return false;
    }
    if (WaitForSingleObject(process.hProcess, seconds * 1000) != WAIT_OBJECT_0) {
        (void)fprintf(stderr, "%s: did not end in time\n", one->name);
        (void)TerminateProcess(process.hProcess, 1);
    } else {
        (void)GetExitCodeProcess(process.hProcess, &code);
    }
    (void)CloseHandle(process.hThread);
    (void)CloseHandle(process.hProcess);
    return code == 0;
}

struct harness_thread {
    HANDLE thread;
    void (*run)(void *argument);
    void *argument;
};

static unsigned __stdcall thread_main(void *given)
{
    harness_thread *self = given;

    self->run(self->argument);
    return 0;
}

harness_thread *harness_thread_start(void (*run)(void *argument), void *argument)
{
    harness_thread *self = malloc(sizeof *self);

    CHECK(self != NULL);
    self->run = run;
    self->argument = argument;
    self->thread = (HANDLE)_beginthreadex(NULL, 0, thread_main, self, 0, NULL);
    CHECK(self->thread != NULL);
    return self;
}

void harness_thread_join(harness_thread *thread)
{
    CHECK(WaitForSingleObject(thread->thread, INFINITE) == WAIT_OBJECT_0);
    (void)CloseHandle(thread->thread);
    free(thread);
}
