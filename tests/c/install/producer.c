/* A producer of a project of its own: producer URL QUEUE COUNT enqueues the numbers below COUNT. */
#include <stdio.h>
#include <stdlib.h>

#include <cwist/sys/job/durable_queue_ext.h>

static cwist_error_t enqueue_all(cwist_job_queue_t *queue, int count)
{
    cwist_error_t error = make_error(CWIST_ERR_INT16);

    for (int number = 0; number < count && cwist_error_is_ok(&error); number++) {
        char payload[16];
        int length = snprintf(payload, sizeof(payload), "%d", number);
        error = cwist_job_queue_enqueue(queue, payload, (size_t)length, "number");
    }
    return error;
}

int main(int argc, char **argv)
{
    cwist_job_conn_t *conn = NULL;
    cwist_job_queue_t *queue = NULL;

    if (argc != 4) {
        (void)fprintf(stderr, "usage: %s URL QUEUE COUNT\n", argv[0]);
        return 2;
    }
    cwist_job_queue_opts_t opts = {.name = argv[2]};
    int count = atoi(argv[3]);
    cwist_error_t error = cwist_job_conn_open(&conn, argv[1], NULL);
    if (cwist_error_is_ok(&error)) {
        error = cwist_job_queue_open(&queue, conn, &opts);
    }
    if (cwist_error_is_ok(&error)) {
        error = enqueue_all(queue, count);
    }
    bool good = cwist_error_is_ok(&error);
    if (good) {
        (void)printf("enqueued %d\n", count);
    } else {
        (void)fprintf(stderr, "%s\n", cwist_job_last_error());
    }
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
