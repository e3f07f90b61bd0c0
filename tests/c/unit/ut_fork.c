/* F08: handles that a forked child inherited are told, never touched. POSIX only. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/api.h"
#include "harness.h"

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

TEST_MAIN({"a_forked_child_has_a_table_of_its_own", a_forked_child_has_a_table_of_its_own})
