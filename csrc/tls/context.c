/* What all sessions of a connection handle share: rules, trusted authorities, our certificate. */
#ifdef CWIST_JQ_WITH_TLS

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/trust.h"
#include "tls/openssl.h"

bool cwist_jq__tls_start(void)
{
#ifdef OPENSSL_INIT_NO_ATEXIT
    return OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
#else
    return OPENSSL_init_ssl(0, NULL) == 1;
#endif
}

const char *cwist_jq__tls_reason(unsigned long error, char text[CWIST_JQ_TLS_TEXT_SIZE])
{
    /* "error:<number>:<library>:<function>:<reason>" */
    ERR_error_string_n(error, text, CWIST_JQ_TLS_TEXT_SIZE);
    const char *colon = strrchr(text, ':');
    return colon != NULL && colon[1] != '\0' ? colon + 1 : text;
}

/* The first error is the cause, those behind it say who passed it on. Empties the queue. */
static int refuse_file(const char *option, const char *path)
{
    char text[CWIST_JQ_TLS_TEXT_SIZE];
    const char *reason = cwist_jq__tls_reason(ERR_peek_error(), text);

    ERR_clear_error();
    return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "%s: cannot use %s: %s", option, path, reason);
}

/* Of a file without a key OpenSSL 3 says only "unsupported", and older ones "no start line". */
static int refuse_key(const char *option, const char *path)
{
    unsigned long error = ERR_peek_error();
#ifdef ERR_R_UNSUPPORTED
    bool absent = ERR_GET_REASON(error) == ERR_R_UNSUPPORTED;
#else
    bool absent = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
#endif

    if (!absent) {
        return refuse_file(option, path);
    }
    ERR_clear_error();
    return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                          "%s: cannot use %s: no private key in it that OpenSSL can read", option,
                          path);
}

/* OpenSSL, or its configuration, cannot do TLS at all. Empties the queue. */
static int refuse_openssl(void)
{
    char text[CWIST_JQ_TLS_TEXT_SIZE];
    unsigned long error = ERR_peek_error();
    const char *reason = cwist_jq__tls_reason(error, text);

    ERR_clear_error();
    if (error == 0 || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE) {
        return cwist_jq__no_memory();
    }
    return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED,
                          "OpenSSL cannot do TLS here: %s (see its openssl.cnf)", reason);
}

static bool is_there(const char *path)
{
    FILE *file = path != NULL ? fopen(path, "r") : NULL;

    if (file != NULL) {
        (void)fclose(file);
    }
    return file != NULL;
}

const char *cwist_jq__tls_trust_fallback(void)
{
    if (getenv(X509_get_default_cert_file_env()) != NULL ||
        getenv(X509_get_default_cert_dir_env()) != NULL || is_there(X509_get_default_cert_file()) ||
        is_there(X509_get_default_cert_dir())) {
        return NULL;
    }
    for (const char *const *path = cwist_jq__trust_files; *path != NULL; path++) {
        if (is_there(*path)) {
            return *path;
        }
    }
    return NULL;
}

/* Whom to trust when the URL does not say. What is missing shows when a certificate is checked. */
static void trust_system(SSL_CTX *ssl)
{
    const char *fallback = cwist_jq__tls_trust_fallback();

    (void)SSL_CTX_set_default_verify_paths(ssl);
    if (fallback != NULL) {
        (void)SSL_CTX_load_verify_locations(ssl, fallback, NULL);
    }
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    if (cwist_jq__trust_store != NULL) {
        (void)SSL_CTX_load_verify_store(ssl, cwist_jq__trust_store);
    }
#endif
    ERR_clear_error();
}

static int set_trust(SSL_CTX *ssl, const cwist_jq__tls_options *options)
{
    SSL_CTX_set_verify(ssl, options->unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (options->ca == NULL) {
        trust_system(ssl);
    } else if (SSL_CTX_load_verify_locations(ssl, options->ca, NULL) != 1) {
        return refuse_file("tls_ca", options->ca);
    }
    return CWIST_SUCCESS;
}

/* Nobody is there to be asked for the password of a key: OpenSSL would ask on the terminal. */
static int no_password(char *buffer, int size, int writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)writing;
    *(bool *)context = true;
    return -1;
}

static int set_certificate(SSL_CTX *ssl, const cwist_jq__tls_options *options)
{
    const char *key = options->key != NULL ? options->key : options->cert;
    const char *key_option = options->key != NULL ? "tls_key" : "tls_cert";
    bool asked = false;

    if (options->cert == NULL) {
        return CWIST_SUCCESS;
    }
    if (SSL_CTX_use_certificate_chain_file(ssl, options->cert) != 1) {
        return refuse_file("tls_cert", options->cert);
    }
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, &asked);
    bool good = SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
    if (!good && asked) {
        ERR_clear_error();
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "%s: cannot use %s: the key has a password; take it off (openssl "
                              "pkey) and let only the program's user read the file",
                              key_option, key);
    }
    return good ? CWIST_SUCCESS : refuse_key(key_option, key);
}

static int set_rules(SSL_CTX *ssl)
{
    /* A stricter rule of the system (openssl.cnf) stands. */
    if (SSL_CTX_get_min_proto_version(ssl) < TLS1_2_VERSION &&
        SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1) {
        ERR_clear_error();
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED, "this OpenSSL has no TLS 1.2");
    }
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return CWIST_SUCCESS;
}

int cwist_jq__tls_context_new(cwist_jq__tls_context **out, const cwist_jq__tls_options *options)
{
    cwist_jq__tls_context *context = cwist_jq__calloc(1, sizeof *context);

    *out = NULL;
    if (context == NULL) {
        return cwist_jq__no_memory();
    }
    if (cwist_jq__tls_start()) {
        ERR_clear_error();
        context->bio = cwist_jq__tls_bio_new();
        context->ssl = SSL_CTX_new(TLS_client_method());
    }
    int status =
        context->bio != NULL && context->ssl != NULL ? set_rules(context->ssl) : refuse_openssl();
    if (status == CWIST_SUCCESS) {
        status = set_trust(context->ssl, options);
    }
    if (status == CWIST_SUCCESS) {
        status = set_certificate(context->ssl, options);
    }
    if (status != CWIST_SUCCESS) {
        cwist_jq__tls_context_free(context);
        return status;
    }
    *out = context;
    return CWIST_SUCCESS;
}

void cwist_jq__tls_context_free(cwist_jq__tls_context *context)
{
    if (context != NULL) {
        SSL_CTX_free(context->ssl);
        BIO_meth_free(context->bio);
        cwist_jq__free(context);
    }
}

int cwist_jq__tls_check_files(const cwist_jq__tls_options *options)
{
    cwist_jq__tls_context *context = NULL;
    int status = cwist_jq__tls_context_new(&context, options);

    cwist_jq__tls_context_free(context);
    return status;
}

#else
typedef int cwist_jq__tls_context_is_absent; /* C wants something in every file */
#endif
