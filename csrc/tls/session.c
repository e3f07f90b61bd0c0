/* One TLS session over a socket of ours. */
#ifdef CWIST_JQ_WITH_TLS

#include <string.h>

#include "platform/socket.h"
#include "tls/openssl.h"

/* A record of TLS and its frame fit in, so that most records come with one call to the system. */
#define INBOX_SIZE 17408

struct cwist_jq__tls {
    SSL *ssl;
    int fd;
    int broken;         /* what the socket failed with in the last call; the text is set */
    bool over;          /* no goodbye: the session failed, or never began */
    bool heard;         /* the first byte came */
    unsigned char byte; /* that byte */
    size_t taken;       /* of the inbox */
    size_t filled;
    unsigned char inbox[INBOX_SIZE]; /* bytes from the socket that OpenSSL has not taken yet */
};

/* ---- the bytes of a session: what OpenSSL calls ---- */

static int bio_write(BIO *bio, const char *data, int len)
{
    cwist_jq__tls *tls = BIO_get_data(bio);
    long count = cwist_jq__send_some(tls->fd, data, (size_t)len);

    BIO_clear_retry_flags(bio);
    if (count > 0) {
        return (int)count;
    }
    if (count < 0) {
        tls->broken = (int)count;
    } else {
        BIO_set_retry_write(bio);
    }
    return -1;
}

static long fill_inbox(cwist_jq__tls *tls)
{
    long count = cwist_jq__recv_some(tls->fd, tls->inbox, sizeof tls->inbox);

    if (count > 0) {
        tls->taken = 0;
        tls->filled = (size_t)count;
        if (!tls->heard) {
            tls->heard = true;
            tls->byte = tls->inbox[0];
        }
    }
    return count;
}

static int bio_read(BIO *bio, char *data, int len)
{
    cwist_jq__tls *tls = BIO_get_data(bio);
    size_t wanted = (size_t)len;

    BIO_clear_retry_flags(bio);
    if (tls->taken == tls->filled) {
        long count = fill_inbox(tls);
        if (count < 0) {
            tls->broken = (int)count;
        } else if (count == 0) {
            BIO_set_retry_read(bio);
        }
        if (count <= 0) {
            return -1;
        }
    }
    size_t there = tls->filled - tls->taken;
    size_t count = wanted < there ? wanted : there;
    memcpy(data, tls->inbox + tls->taken, count);
    tls->taken += count;
    return (int)count;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    const cwist_jq__tls *tls = BIO_get_data(bio);

    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF) {
        return tls->broken != CWIST_SUCCESS;
    }
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *cwist_jq__tls_bio_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "cwist_jq socket");

    if (method != NULL) {
        (void)BIO_meth_set_write(method, bio_write);
        (void)BIO_meth_set_read(method, bio_read);
        (void)BIO_meth_set_ctrl(method, bio_control);
    }
    return method;
}

/* ---- errors ---- */

/* OpenSSL leaves errors in a queue of the thread, which others in the program read too. */
static void begin(cwist_jq__tls *tls)
{
    ERR_clear_error();
    tls->broken = CWIST_SUCCESS;
}

/* Whether the peer's alert is about our certificate; the numbers are those of RFC 8446. */
static bool is_about_certificate(int alert)
{
    return (alert >= 42 && alert <= 49 && alert != 47) || alert == 116;
}

/* The peer does not speak TLS: every record begins with one of a few numbers. */
static bool is_other_protocol(const cwist_jq__tls *tls)
{
    return tls->heard && (tls->byte < 20 || tls->byte > 24);
}

/* Says why the last call failed. `otherwise` is the code for what is not about certificates. */
static int explain(cwist_jq__tls *tls, int problem, int otherwise)
{
    unsigned long error = ERR_peek_error();
    long verified = SSL_get_verify_result(tls->ssl);
    char text[CWIST_JQ_TLS_TEXT_SIZE];

    tls->over = true;
    if (tls->broken != CWIST_SUCCESS) {
        return tls->broken;
    }
    if (problem == SSL_ERROR_ZERO_RETURN || error == 0) {
        return cwist_jq__fail(CWIST_ERROR_IO, "the server closed the connection");
    }
    if (is_other_protocol(tls)) {
        return cwist_jq__fail(CWIST_ERROR_PROTOCOL,
                              "the server does not speak TLS on this port; is it for redis://?");
    }
    if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
        ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
        return cwist_jq__fail(CWIST_ERROR_DENIED, "certificate verify failed: %s",
                              X509_verify_cert_error_string(verified));
    }
    const char *reason = cwist_jq__tls_reason(error, text);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
        is_about_certificate(ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET)) {
        return cwist_jq__fail(CWIST_ERROR_DENIED, "the server does not accept our certificate: %s",
                              reason);
    }
    return cwist_jq__fail(otherwise, "TLS: %s", reason);
}

static int failed(cwist_jq__tls *tls, int problem, int otherwise)
{
    int status = explain(tls, problem, otherwise);

    ERR_clear_error();
    return status;
}

/* What OpenSSL waits for. 1: it came, 0: the deadline did; else why it cannot go on. */
static int await(cwist_jq__tls *tls, int problem, uint64_t deadline, int otherwise)
{
    if (problem == SSL_ERROR_WANT_READ) {
        return cwist_jq__wait_readable(tls->fd, deadline);
    }
    if (problem == SSL_ERROR_WANT_WRITE) {
        return cwist_jq__wait_writable(tls->fd, deadline);
    }
    return failed(tls, problem, otherwise);
}

/* ---- a session ---- */

/* The certificate must be for this host. A name also goes to the server, which may serve many. */
static bool expect_name(SSL *ssl, const char *name)
{
    bool address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;

    ERR_clear_error();
    return address || (SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1);
}

static bool expect_host(SSL *ssl, const char *host)
{
    char *name = cwist_jq__strndup(host, cwist_jq__certificate_name_len(host, strlen(host)));

    /*
     * A common name is a text for people: the limits of what an authority may sign do not hold for
     * one without a dot, as "redis" is.
     */
    SSL_set_hostflags(ssl,
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    bool done = name != NULL && expect_name(ssl, name);
    cwist_jq__free(name);
    return done;
}

int cwist_jq__tls_open(cwist_jq__tls **out, const cwist_jq__tls_context *context, int fd,
                       const char *host)
{
    cwist_jq__tls *tls = cwist_jq__calloc(1, sizeof *tls);
    BIO *bio = tls != NULL ? BIO_new(context->bio) : NULL;

    *out = NULL;
    if (bio == NULL) {
        cwist_jq__free(tls);
        return cwist_jq__no_memory();
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    tls->fd = fd;
    tls->over = true;
    tls->ssl = SSL_new(context->ssl);
    if (tls->ssl == NULL || !expect_host(tls->ssl, host)) {
        (void)BIO_free(bio);
        cwist_jq__tls_close(tls);
        return cwist_jq__no_memory();
    }
    SSL_set_bio(tls->ssl, bio, bio);
    *out = tls;
    return CWIST_SUCCESS;
}

int cwist_jq__tls_shake_hands(cwist_jq__tls *tls, uint64_t until)
{
    for (;;) {
        begin(tls);
        int result = SSL_connect(tls->ssl);
        if (result == 1) {
            tls->over = false;
            return 1;
        }
        int ready = await(tls, SSL_get_error(tls->ssl, result), until, CWIST_ERROR_PROTOCOL);
        if (ready <= 0) {
            return ready;
        }
    }
}

void cwist_jq__tls_close(cwist_jq__tls *tls)
{
    if (tls == NULL) {
        return;
    }
    if (!tls->over) {
        begin(tls);
        (void)SSL_shutdown(tls->ssl);
        ERR_clear_error();
    }
    SSL_free(tls->ssl);
    cwist_jq__free(tls);
}

/*
 * Sending failed. A server that does not accept our certificate may have said so and closed before:
 * then its alert is still to be read.
 */
static int last_words(cwist_jq__tls *tls, int status)
{
    size_t count = 0;
    char byte;

    begin(tls);
    int result = SSL_peek_ex(tls->ssl, &byte, 1, &count);
    int problem = SSL_get_error(tls->ssl, result);
    if (problem == SSL_ERROR_SSL && tls->broken == CWIST_SUCCESS) {
        return failed(tls, problem, CWIST_ERROR_IO);
    }
    ERR_clear_error();
    return status;
}

int cwist_jq__tls_send_all(cwist_jq__tls *tls, const void *data, size_t len, uint64_t deadline)
{
    const char *at = data;

    while (len > 0) {
        size_t count = 0;
        begin(tls);
        int result = SSL_write_ex(tls->ssl, at, len, &count);
        if (result == 1) {
            at += count;
            len -= count;
            continue;
        }
        int ready = await(tls, SSL_get_error(tls->ssl, result), deadline, CWIST_ERROR_IO);
        if (ready < 0) {
            return tls->over ? last_words(tls, ready) : ready;
        }
        if (ready == 0) {
            tls->over = true; /* half a record has left */
            return cwist_jq__fail(CWIST_ERROR_IO, "send: the server takes no more in time");
        }
    }
    return CWIST_SUCCESS;
}

/* Whether bytes have come that the socket does not tell of any more. */
static bool has_bytes(const cwist_jq__tls *tls)
{
    return SSL_pending(tls->ssl) > 0 || tls->taken < tls->filled;
}

int cwist_jq__tls_wait_readable(cwist_jq__tls *tls, uint64_t deadline)
{
    return has_bytes(tls) ? 1 : cwist_jq__wait_readable(tls->fd, deadline);
}

long cwist_jq__tls_recv_some(cwist_jq__tls *tls, void *data, size_t cap)
{
    size_t count = 0;

    begin(tls);
    int result = SSL_read_ex(tls->ssl, data, cap, &count);
    if (result == 1) {
        return (long)count;
    }
    int problem = SSL_get_error(tls->ssl, result);
    if (problem == SSL_ERROR_WANT_READ || problem == SSL_ERROR_WANT_WRITE) {
        return 0;
    }
    return failed(tls, problem, CWIST_ERROR_IO);
}

bool cwist_jq__tls_is_idle(cwist_jq__tls *tls)
{
    size_t count = 0;
    char byte;

    if (!has_bytes(tls) && cwist_jq__socket_is_idle(tls->fd)) {
        return true;
    }
    /* What came may be for OpenSSL itself: a ticket, a new key. */
    begin(tls);
    int result = SSL_peek_ex(tls->ssl, &byte, 1, &count);
    bool idle = result != 1 && SSL_get_error(tls->ssl, result) == SSL_ERROR_WANT_READ;
    tls->over = tls->over || !idle;
    ERR_clear_error();
    return idle;
}

#else
typedef int cwist_jq__tls_session_is_absent; /* C wants something in every file */
#endif
