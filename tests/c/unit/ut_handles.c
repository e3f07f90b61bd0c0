/* F01: handles that are closed, foreign or nonsense are told, never touched. */
#include <stdlib.h>

#include "core/api.h"
#include "harness.h"

static int finished;

static void count_finish(void *object)
{
    finished++;
    free(object);
}

static cwist_jq__object *new_object(cwist_jq__kind kind)
{
    cwist_jq__object *object = malloc(sizeof *object);
    CHECK(object != NULL);
    cwist_jq__object_init(object, kind, count_finish);
    return object;
}

static int get_code(const void *handle, cwist_jq__kind kind)
{
    void *object = NULL;
    int status = cwist_jq__handle_get(&object, handle, kind, "queue");
    cwist_jq__unref(object);
    return status;
}

static void a_handle_lives_until_it_is_taken(void)
{
    void *taken = NULL;
    void *handle = cwist_jq__handle_new(new_object(CWIST_JQ_KIND_QUEUE));
    CHECK(handle != NULL);
    CHECK_INT(1, cwist_job_live_handles());
    CHECK_INT(CWIST_SUCCESS, get_code(handle, CWIST_JQ_KIND_QUEUE));
    CHECK_INT(CWIST_SUCCESS, cwist_jq__handle_take(&taken, handle, CWIST_JQ_KIND_QUEUE, "queue"));
    CHECK_INT(0, cwist_job_live_handles());
    CHECK_INT(0, finished);
    cwist_jq__unref(taken);
    CHECK_INT(1, finished);
    CHECK_INT(CWIST_ERROR_CLOSED, get_code(handle, CWIST_JQ_KIND_QUEUE));
    CHECK_TEXT("the queue is closed");
}

static void a_place_that_is_used_again_is_not_the_old_handle(void)
{
    void *taken = NULL;
    void *old = cwist_jq__handle_new(new_object(CWIST_JQ_KIND_QUEUE));
    CHECK_INT(CWIST_SUCCESS, cwist_jq__handle_take(&taken, old, CWIST_JQ_KIND_QUEUE, "queue"));
    cwist_jq__unref(taken);
    void *fresh = cwist_jq__handle_new(new_object(CWIST_JQ_KIND_QUEUE));
    CHECK(fresh != old);
    CHECK_INT(CWIST_ERROR_CLOSED, get_code(old, CWIST_JQ_KIND_QUEUE));
    CHECK_INT(CWIST_SUCCESS, get_code(fresh, CWIST_JQ_KIND_QUEUE));
    CHECK_INT(CWIST_SUCCESS, cwist_jq__handle_take(&taken, fresh, CWIST_JQ_KIND_QUEUE, "queue"));
    cwist_jq__unref(taken);
}

static void kinds_and_nonsense_are_told_apart(void)
{
    void *taken = NULL;
    void *job = cwist_jq__handle_new(new_object(CWIST_JQ_KIND_JOB));
    int local = 0;
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, get_code(job, CWIST_JQ_KIND_QUEUE));
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, get_code(NULL, CWIST_JQ_KIND_QUEUE));
    CHECK(get_code(&local, CWIST_JQ_KIND_QUEUE) != CWIST_SUCCESS);
    CHECK(cwist_jq__handle_peek(&local, CWIST_JQ_KIND_JOB) == NULL);
    CHECK_INT(CWIST_SUCCESS, cwist_jq__handle_take(&taken, job, CWIST_JQ_KIND_JOB, "job"));
    cwist_jq__unref(taken);
}

static void many_handles(void)
{
    enum { MANY = 1000 };
    static void *handles[MANY];
    void *taken = NULL;

    for (int i = 0; i < MANY; i++) {
        handles[i] = cwist_jq__handle_new(new_object(CWIST_JQ_KIND_JOB));
    }
    CHECK_INT(MANY, cwist_job_live_handles());
    for (int i = MANY - 1; i >= 0; i--) {
        CHECK_INT(CWIST_SUCCESS,
                  cwist_jq__handle_take(&taken, handles[i], CWIST_JQ_KIND_JOB, "job"));
        cwist_jq__unref(taken);
    }
    CHECK_INT(MANY, finished);
    CHECK_INT(0, cwist_job_live_handles());
}

TEST_MAIN({"a_handle_lives_until_it_is_taken", a_handle_lives_until_it_is_taken},
          {"a_place_that_is_used_again_is_not_the_old_handle",
           a_place_that_is_used_again_is_not_the_old_handle},
          {"kinds_and_nonsense_are_told_apart", kinds_and_nonsense_are_told_apart},
          {"many_handles", many_handles})
