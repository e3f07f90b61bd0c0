#include "platform/detached.h"

#include <process.h>

#include "core/internal.h"
#include "platform/win/windows.h"

typedef struct task {
    void (*run)(void *argument);
    void *argument;
} task;

static unsigned __stdcall thread_main(void *given)
{
    task todo = *(task *)given;

    cwist_jq__free(given);
    todo.run(todo.argument);
    return 0;
}

bool cwist_jq__start_detached(void (*run)(void *argument), void *argument)
{
    task *todo = cwist_jq__alloc(sizeof *todo);

    if (todo == NULL) {
        return false;
    }
    *todo = (task){run, argument};
    uintptr_t thread = _beginthreadex(NULL, 0, thread_main, todo, 0, NULL);
    if (thread == 0) {
        cwist_jq__free(todo);
        return false;
    }
    (void)CloseHandle((HANDLE)thread);
    return true;
}

bool cwist_jq__at_exit(void (*call)(void))
{
    (void)call;
    return true;
}
