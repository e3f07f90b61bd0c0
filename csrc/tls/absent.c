/* A build without OpenSSL: no context is ever made, and so no session either. */
#include "tls/tls.h"

#ifndef CWIST_JQ_WITH_TLS

bool cwist_jq__tls_start(void)
{
    return true;
}

int cwist_jq__tls_context_new(cwist_jq__tls_context **context, const cwist_jq__tls_options *options)
{
    (void)options;
    *context = NULL;
    return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                          "this build of cwist_jq has no TLS; build it with OpenSSL");
}

void cwist_jq__tls_context_free(cwist_jq__tls_context *context)
{
    (void)context;
}

int cwist_jq__tls_check_files(const cwist_jq__tls_options *options)
{
    (void)options;
    return CWIST_SUCCESS;
}

const char *cwist_jq__tls_trust_fallback(void)
{
    return NULL;
}

int cwist_jq__tls_open(cwist_jq__tls **tls, const cwist_jq__tls_context *context, int fd,
                       const char *host)
{
    (void)context;
    (void)fd;
    (void)host;
    *tls = NULL;
    return CWIST_ERROR_UNSUPPORTED;
}

int cwist_jq__tls_shake_hands(cwist_jq__tls *tls, uint64_t until)
{
    (void)tls;
    (void)until;
    return CWIST_ERROR_UNSUPPORTED;
}

void cwist_jq__tls_close(cwist_jq__tls *tls)
{
    (void)tls;
}

int cwist_jq__tls_send_all(cwist_jq__tls *tls, const void *data, size_t len, uint64_t deadline)
{
    (void)tls;
    (void)data;
    (void)len;
    (void)deadline;
    return CWIST_ERROR_UNSUPPORTED;
}

int cwist_jq__tls_wait_readable(cwist_jq__tls *tls, uint64_t deadline)
{
    (void)tls;
    (void)deadline;
    return CWIST_ERROR_UNSUPPORTED;
}

long cwist_jq__tls_recv_some(cwist_jq__tls *tls, void *data, size_t cap)
{
    (void)tls;
    (void)data;
    (void)cap;
    return CWIST_ERROR_UNSUPPORTED;
}

bool cwist_jq__tls_is_idle(cwist_jq__tls *tls)
{
    (void)tls;
    return false;
}

#else
typedef int cwist_jq__tls_is_present; /* C wants something in every file */
#endif
