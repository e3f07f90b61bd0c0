/* What the files of this folder share, in a build with OpenSSL. */
#ifndef CWIST_JQ_TLS_OPENSSL_H
#define CWIST_JQ_TLS_OPENSSL_H

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls/tls.h"

struct cwist_jq__tls_context {
    SSL_CTX *ssl;
    BIO_METHOD *bio; /* of the sessions */
};

#define CWIST_JQ_TLS_TEXT_SIZE 256

/* What OpenSSL says of an error of its queue, without the numbers around it. */
const char *cwist_jq__tls_reason(unsigned long error, char text[CWIST_JQ_TLS_TEXT_SIZE]);

/* The functions that OpenSSL calls for the bytes of a session. NULL: no memory. */
BIO_METHOD *cwist_jq__tls_bio_new(void);

#endif
