/* Stores of memory:// and forked children. POSIX only. */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static cwist_job_conn_t *connect_to(const char *url)
{
    cwist_job_conn_t *conn = NULL;
    CHECK_OK(cwist_job_conn_open(&conn, url, NULL));
    return conn;
}

static cwist_job_queue_t *queue_on(cwist_job_conn_t *conn, const char *name)
{
    return harness_queue(conn, (cwist_job_queue_opts_t){.name = name});
}

static void put(cwist_job_queue_t *queue, const char *payload)
{
    CHECK_OK(cwist_job_queue_enqueue(queue, payload, strlen(payload), NULL));
}

static void take(cwist_job_queue_t *queue, const char *payload)
{
    cwist_job_t *job = harness_claim(queue);
    harness_payload_is(job, payload);
    CHECK_OK(cwist_job_queue_ack(queue, job));
}

/* F08: the child is told that its handles are closed, and has an empty store of each name. */
static int child_starts_anew(cwist_job_queue_t *inherited)
{
    cwist_error_t error = cwist_job_queue_enqueue(inherited, "x", 1, NULL);
    bool told = cwist_job_error_code(&error) == CWIST_ERROR_CLOSED;
    cwist_job_conn_t *conn = connect_to("memory://forked");
    cwist_job_queue_t *queue = queue_on(conn, "mail");
    harness_no_job(queue);
    put(queue, "of the child");
    take(queue, "of the child");
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    return told && cwist_job_live_handles() == 0 ? 0 : 1;
}

static atomic_bool stop;

/* Locks and unlocks everything, so that a fork meets it at any point. */
static void stay_busy(void *argument)
{
    while (!atomic_load(&stop)) {
        cwist_job_conn_t *conn = connect_to("memory://forked");
        cwist_job_queue_t *queue = queue_on(conn, "busy");
        put(queue, "x");
        take(queue, "x");
        cwist_job_queue_destroy(queue);
        cwist_job_conn_close(conn);
    }
    (void)argument;
}

static void a_forked_child_has_stores_of_its_own(void)
{
    cwist_job_conn_t *conn = connect_to("memory://forked");
    cwist_job_queue_t *queue = queue_on(conn, "mail");
    harness_thread *busy = harness_thread_start(stay_busy, NULL);

    put(queue, "of the parent");
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)alarm(10);
            _exit(child_starts_anew(queue));
        }
        int state = 0;
        CHECK(waitpid(child, &state, 0) == child);
        CHECK_INT(0, state);
    }
    atomic_store(&stop, true);
    harness_thread_join(busy);
    take(queue, "of the parent");
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
}

TEST_MAIN({"a_forked_child_has_stores_of_its_own", a_forked_child_has_stores_of_its_own})
