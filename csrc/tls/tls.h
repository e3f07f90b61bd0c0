/*
 * TLS over our own sockets, with OpenSSL. Deadlines, slices and codes are those of
 * platform/socket.h, through which every byte goes.
 *
 * A build without OpenSSL has the same functions: no context can be made there, and UNSUPPORTED
 * says so.
 */
#ifndef CWIST_JQ_TLS_H
#define CWIST_JQ_TLS_H

#include "core/internal.h"

/*
 * Starts OpenSSL without the clean-up that it does at the program's exit: threads of ours and of
 * libnats may still be inside it then, and what it would tear down under them the system takes back
 * anyway. Only the first call of OpenSSL in a process decides, so this comes before all others,
 * also before libnats, which asks it for random numbers. False: it does not start.
 */
bool cwist_jq__tls_start(void);

/* What all sessions of one connection handle share. Any thread. */
typedef struct cwist_jq__tls_context cwist_jq__tls_context;

/* Reads the certificates and the key. INVALID_PARAM names the file and OpenSSL's reason. */
int cwist_jq__tls_context_new(cwist_jq__tls_context **context,
                              const cwist_jq__tls_options *options) CWIST_JQ_MUST_USE;
void cwist_jq__tls_context_free(cwist_jq__tls_context *context); /* NULL is allowed */

/* The same without keeping it; SUCCESS in a build without OpenSSL, where libnats has to tell. */
int cwist_jq__tls_check_files(const cwist_jq__tls_options *options) CWIST_JQ_MUST_USE;

/*
 * A file with the certificate authorities of this system, when OpenSSL would look for them where
 * there are none: one that came with us was built for another system. NULL: OpenSSL finds its own.
 */
const char *cwist_jq__tls_trust_fallback(void);

/* One session, on a connected socket that stays the caller's. One thread at a time. */
typedef struct cwist_jq__tls cwist_jq__tls;

/* Sends nothing yet. `host` is the name or address that the certificate must carry. */
int cwist_jq__tls_open(cwist_jq__tls **tls, const cwist_jq__tls_context *context, int fd,
                       const char *host) CWIST_JQ_MUST_USE;
/*
 * Goes on with the handshake until `until`. Returns 1 when it is done, 0 when it is not yet.
 * DENIED: one side does not accept the other's certificate. PROTOCOL: this is not TLS, or not one
 * that both can speak.
 */
int cwist_jq__tls_shake_hands(cwist_jq__tls *tls, uint64_t until);
/* Tells the peer that this is the end, when that is possible at once. NULL is allowed. */
void cwist_jq__tls_close(cwist_jq__tls *tls);

/* As their namesakes in platform/socket.h. */
int cwist_jq__tls_send_all(cwist_jq__tls *tls, const void *data, size_t len, uint64_t deadline);
int cwist_jq__tls_wait_readable(cwist_jq__tls *tls, uint64_t deadline);
long cwist_jq__tls_recv_some(cwist_jq__tls *tls, void *data, size_t cap);
bool cwist_jq__tls_is_idle(cwist_jq__tls *tls);

#endif
