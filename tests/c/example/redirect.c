/* Runs the documentation's example against the private server. */
#include <stdio.h>
#include <stdlib.h>

#include "example.h"
#include "harness.h"

cwist_redis_t *__wrap_cwist_redis_connect(const char *host, int port);
cwist_redis_t *__real_cwist_redis_connect(const char *host, int port);

cwist_redis_t *__wrap_cwist_redis_connect(const char *host, int port)
{
    char private_host[64] = "";
    int private_port = 0;

    CHECK_STR("127.0.0.1", host);
    CHECK_INT(6379, port);
    CHECK(sscanf(harness_url(), "redis://%63[^:]:%d", private_host, &private_port) == 2);
    return __real_cwist_redis_connect(private_host, private_port);
}

int main(void)
{
    (void)harness_url(); /* skips without a server */
    example();
    CHECK_INT(1, example_sent);
    CHECK_INT(0, cwist_job_live_handles());
    (void)printf("ok     contract_example\n");
    return 0;
}
