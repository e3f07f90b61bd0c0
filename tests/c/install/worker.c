/*
 * A worker of a project of its own: worker URL QUEUE COUNT works until COUNT jobs are done. It
 * nacks the number 7 once, as a handler would that fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cwist/sys/job/durable_queue_ext.h>

enum { CLAIM_TIMEOUT_MS = 10000, FAILS_ONCE = 7 };

struct tally {
    int done;
    int retried;
    long sum;
};

/* The number in a job's payload, -1 when it holds none. */
static long number_of(const cwist_job_t *job)
{
    size_t length = 0;
    const void *payload = cwist_job_payload(job, &length);
    const char *type = cwist_job_type(job);
    char text[16] = "";

    if (payload == NULL || length >= sizeof(text) || type == NULL || strcmp(type, "number") != 0) {
        return -1;
    }
    memcpy(text, payload, length);
    return strtol(text, NULL, 10);
}

static cwist_error_t work_once(cwist_job_queue_t *queue, struct tally *tally)
{
    cwist_job_t *job = NULL;
    cwist_error_t error = cwist_job_queue_claim(queue, CLAIM_TIMEOUT_MS, &job);

    if (!cwist_error_is_ok(&error)) {
        return error;
    }
    long number = number_of(job);
    if (number == FAILS_ONCE && cwist_job_attempts(job) == 1) {
        tally->retried++;
        return cwist_job_queue_nack(queue, job);
    }
    tally->done++;
    tally->sum += number;
    return cwist_job_queue_ack(queue, job);
}

int main(int argc, char **argv)
{
    cwist_job_conn_t *conn = NULL;
    cwist_job_queue_t *queue = NULL;
    struct tally tally = {0, 0, 0};

    if (argc != 4) {
        (void)fprintf(stderr, "usage: %s URL QUEUE COUNT\n", argv[0]);
        return 2;
    }
    cwist_job_queue_opts_t opts = {.name = argv[2], .visibility_timeout_ms = 60000};
    cwist_error_t error = cwist_job_conn_open(&conn, argv[1], NULL);
    if (cwist_error_is_ok(&error)) {
        error = cwist_job_queue_open(&queue, conn, &opts);
    }
    while (cwist_error_is_ok(&error) && tally.done < atoi(argv[3])) {
        error = work_once(queue, &tally);
    }
    bool good = cwist_error_is_ok(&error);
    if (good) {
        (void)printf("done %d retried %d sum %ld\n", tally.done, tally.retried, tally.sum);
    } else {
        (void)fprintf(stderr, "%s\n", cwist_job_last_error());
    }
    cwist_job_queue_destroy(queue);
    cwist_job_conn_close(conn);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
