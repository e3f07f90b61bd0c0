/* F08: handles that a forked child inherited are told, never touched. POSIX only. */
#if defined(__linux__)
#define _GNU_SOURCE /* clone() */
#include <sched.h>
#include <signal.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/api.h"
#include "harness.h"
#include "platform/process.h"

static void *new_handle(void)
{
    cwist_jq__object *object = malloc(sizeof *object);
    CHECK(object != NULL);
    cwist_jq__object_init(object, CWIST_JQ_KIND_QUEUE, free);
    return cwist_jq__handle_new(object);
}

static int get_code(const void *handle)
{
    void *object = NULL;
    int status = cwist_jq__handle_get(&object, handle, CWIST_JQ_KIND_QUEUE, "queue");
    cwist_jq__unref(object);
    return status;
}

static void a_forked_child_has_a_table_of_its_own(void)
{
    void *taken = NULL;
    void *handle = new_handle();
    pid_t child = fork();
    if (child == 0) {
        bool told = get_code(handle) == CWIST_ERROR_CLOSED &&
                    strstr(cwist_job_last_error(), "another process") != NULL;
        void *own = new_handle();
        bool works = get_code(own) == CWIST_SUCCESS;
        _exit(told && works ? 0 : 1);
    }
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child);
    CHECK_INT(0, state);
    CHECK_INT(CWIST_SUCCESS, get_code(handle));
    CHECK_INT(CWIST_SUCCESS, cwist_jq__handle_take(&taken, handle, CWIST_JQ_KIND_QUEUE, "queue"));
    cwist_jq__unref(taken);
}

/* ---- the process's id, which is kept ---- */

static bool id_is_own(void)
{
    return cwist_jq__process_id() == (uint64_t)getpid() &&
           cwist_jq__process_id() == (uint64_t)getpid();
}

static int end_of(pid_t child)
{
    int state = -1;
    return child > 0 && waitpid(child, &state, 0) == child ? state : -1;
}

/* A line of descendants, each of which asks before it forks, or not. */
static int descend(int generations, bool asks_before)
{
    if (asks_before && !id_is_own()) {
        return 1;
    }
    pid_t child = generations > 0 ? fork() : 0;
    if (generations > 0 && child == 0) {
        _exit(descend(generations - 1, asks_before));
    }
    return (generations == 0 || end_of(child) == 0) && id_is_own() ? 0 : 1;
}

static void every_descendant_has_its_own_id(void)
{
    CHECK_INT(0, descend(3, false));
    CHECK_INT(0, descend(3, true));
}

static void ask_for_ever(void *argument)
{
    atomic_bool *stop = argument;
    while (!atomic_load(stop)) {
        CHECK(id_is_own());
    }
}

static void a_fork_beside_threads_that_ask_has_its_own_id(void)
{
    atomic_bool stop = false;
    harness_thread *threads[4];

    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        threads[i] = harness_thread_start(ask_for_ever, &stop);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            _exit(id_is_own() ? 0 : 1);
        }
        CHECK_INT(0, end_of(child));
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        harness_thread_join(threads[i]);
    }
}

#if defined(__linux__)
static int cloned(void *unused)
{
    (void)unused;
    return id_is_own() ? 0 : 1;
}

/* It shares the parent's memory, where the system has such children. */
static int sharing(void *unused)
{
    (void)unused;
    return cwist_jq__process_id() != 0 ? 0 : 1;
}
#endif

/* clone() runs no handlers of pthread_atfork(), and vfork() copies no memory. */
static void a_child_of_clone_or_vfork_leaves_the_id_right(void)
{
    CHECK(id_is_own());
#if defined(__linux__)
    static _Alignas(16) char stack[64 * 1024];
    CHECK_INT(0, end_of(clone(cloned, stack + sizeof stack, SIGCHLD, NULL)));
    CHECK_INT(0,
              end_of(clone(sharing, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL)));
    CHECK(id_is_own());
#endif
}

TEST_MAIN({"a_forked_child_has_a_table_of_its_own", a_forked_child_has_a_table_of_its_own},
          {"every_descendant_has_its_own_id", every_descendant_has_its_own_id},
          {"a_fork_beside_threads_that_ask_has_its_own_id",
           a_fork_beside_threads_that_ask_has_its_own_id},
          {"a_child_of_clone_or_vfork_leaves_the_id_right",
           a_child_of_clone_or_vfork_leaves_the_id_right})
