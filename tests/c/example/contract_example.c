/* The example of the contract, word for word, in a program that makes it run. */
#include <stdio.h>
#include <string.h>

#include "example.h"

int example_sent;

static bool send_email(const void *payload, size_t len, const char *type)
{
    example_sent += len == 15 && memcmp(payload, "{\"to\":\"a@b.co\"}", 15) == 0 &&
                    strcmp(type, "welcome") == 0;
    return true;
}

/* clang-format off */
#include <cwist/sys/job/durable_queue.h>

void example(void)
{
cwist_redis_t *r = cwist_redis_connect("127.0.0.1", 6379);
cwist_job_queue_opts_t opts = {
    .name = "emails",
    .visibility_timeout_ms = 30000,
    .max_retries = 5,
};
cwist_job_queue_t *q = cwist_job_queue_create_redis(r, &opts);

cwist_job_queue_enqueue(q, "{\"to\":\"a@b.co\"}", 15, "welcome");

/* worker loop */
cwist_job_t *job = NULL;
cwist_error_t err = cwist_job_queue_claim(q, 5000, &job);
if (cwist_error_is_ok(&err)) {
    size_t len;
    const void *payload = cwist_job_payload(job, &len);
    bool ok = send_email(payload, len, cwist_job_type(job));
    if (ok) cwist_job_queue_ack(q, job);
    else    cwist_job_queue_nack(q, job);
}

cwist_job_queue_destroy(q);
cwist_redis_close(r);
}
