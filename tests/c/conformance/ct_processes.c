/* F07, F08: forked children, programs that are started, and the end of a program. POSIX only. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static int child_is_told(cwist_job_queue_t *queue)
{
    cwist_job_t *job = NULL;
    cwist_error_t error = cwist_job_queue_enqueue(queue, "x", 1, NULL);
    bool told = cwist_job_error_code(&error) == CWIST_ERROR_CLOSED &&
                strstr(cwist_job_last_error(), "another process") != NULL;
    error = cwist_job_queue_claim(queue, 0, &job);
    told = told && cwist_job_error_code(&error) == CWIST_ERROR_CLOSED;
    cwist_job_queue_destroy(queue);
    return told ? 0 : 1;
}

static void a_forked_child_is_told_and_harms_nobody(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)alarm(10);
            _exit(child_is_told(queue));
        }
        int state = 0;
        CHECK(waitpid(child, &state, 0) == child);
        CHECK_INT(0, state);
    }
    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

static void a_program_that_is_started_inherits_no_socket(void)
{
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
    CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
    CHECK_OK(cwist_job_queue_ack(queue, harness_claim(queue)));
    pid_t child = fork();
    if (child == 0) {
        (void)execlp("sh", "sh", "-c",
                     "for f in /proc/self/fd/*; do case $(readlink $f) in socket:*) exit 1;; "
                     "esac; done; exit 0",
                     (char *)NULL);
        _exit(2);
    }
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child);
    CHECK_INT(0, WEXITSTATUS(state));
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

/* Keeps the lease of a job of its own for a while; the fork left it no thread for that. */
static int child_renews(const char *name)
{
    cwist_job_t *job = NULL;
    cwist_job_conn_t *conn = harness_connect();
    cwist_job_queue_t *queue =
        harness_queue(conn, (cwist_job_queue_opts_t){.name = name, .visibility_timeout_ms = 300});

    CHECK_OK(cwist_job_queue_enqueue(queue, "child", 5, NULL));
    job = harness_claim(queue);
    harness_payload_is(job, "child");
    CHECK_OK(cwist_job_queue_renew(queue, job));
    harness_pass_ms(1200);
    CHECK_OK(cwist_job_queue_ack(queue, job));
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    return 0;
}

static void parent_and_child_renew_leases_each(void)
{
    if (HARNESS_TSAN) {
        return; /* it takes a child's thread for one of the parent's at the same address */
    }
    char name[64];
    cwist_job_conn_t *conn = harness_connect();
    (void)snprintf(name, sizeof name, "%s", harness_queue_name());
    cwist_job_queue_t *queue =
        harness_queue(conn, (cwist_job_queue_opts_t){.name = name, .visibility_timeout_ms = 300});

    CHECK_OK(cwist_job_queue_enqueue(queue, "parent", 6, NULL));
    cwist_job_t *job = harness_claim(queue);
    CHECK_OK(cwist_job_queue_renew(queue, job));
    harness_pass_ms(150); /* the thread is at work */
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(20);
        exit(child_renews(name));
    }
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child);
    CHECK_INT(0, state);
    CHECK_OK(cwist_job_queue_ack(queue, job)); /* more than three leases later */
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

/* A program may end while its leases are kept. */
static void a_program_may_end_with_leases_kept(void)
{
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(10);
        cwist_job_queue_t *queue =
            harness_open_ext((cwist_job_queue_opts_t){.visibility_timeout_ms = 30},
                             (cwist_job_queue_ext_opts_t){.auto_renew = true});
        CHECK_OK(cwist_job_queue_enqueue(queue, "x", 1, NULL));
        (void)harness_claim(queue);
        harness_pass_ms(105); /* an extension every 10 ms */
        exit(0);
    }
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child);
    CHECK_INT(0, state);
}

/* F07: a program may end while a claim is blocked. */
static void claim_for_long(void *argument)
{
    cwist_job_t *job = NULL;
    (void)cwist_job_queue_claim(argument, 30000, &job);
    cwist_job_destroy(job);
}

static void a_program_may_end_with_a_blocked_claim(void)
{
    pid_t child = fork();
    if (child == 0) {
        static harness_thread *claiming; /* never joined, and no leak */
        (void)alarm(10);
        cwist_job_conn_t *conn = harness_connect();
        cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
        claiming = harness_thread_start(claim_for_long, queue);
        harness_pass_ms(300); /* so that it has reached the server */
        exit(claiming != NULL ? 0 : 1);
    }
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child);
    CHECK_INT(0, state);
}

TEST_MAIN({"a_forked_child_is_told_and_harms_nobody", a_forked_child_is_told_and_harms_nobody},
          {"a_program_that_is_started_inherits_no_socket",
           a_program_that_is_started_inherits_no_socket},
          {"parent_and_child_renew_leases_each", parent_and_child_renew_leases_each},
          {"a_program_may_end_with_leases_kept", a_program_may_end_with_leases_kept},
          {"a_program_may_end_with_a_blocked_claim", a_program_may_end_with_a_blocked_claim})
