/* F07: the end of a program whose libraries use OpenSSL. POSIX only, in builds with OpenSSL. */
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static void openssl_cleans_up(void)
{
    _exit(9);
}

/* Threads of libnats free what is OpenSSL's at that moment; in its clean-up they would crash. */
static void openssl_is_left_alone_when_a_program_ends(void)
{
    pid_t child = fork();
    if (child == 0) {
        cwist_job_conn_t *conn = harness_connect();
        cwist_job_queue_t *queue = harness_queue(conn, (cwist_job_queue_opts_t){0});
        cwist_job_queue_destroy(queue);
        cwist_job_conn_close(conn);
        exit(OPENSSL_atexit(openssl_cleans_up) == 1 ? 0 : 1);
    }
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child);
    CHECK_INT(0, WEXITSTATUS(state));
}

TEST_MAIN({"openssl_is_left_alone_when_a_program_ends", openssl_is_left_alone_when_a_program_ends})
