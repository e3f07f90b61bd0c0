/*
 * Where authorities are looked for when OpenSSL was built for another system. The linker leads its
 * answers about that here.
 */
#include <stdlib.h>

#include "harness.h"
#include "platform/trust.h"
#include "tls/tls.h"

static const char *built_in = "/nowhere";
static const char *const names[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};
#define NAMES (sizeof names / sizeof *names)

const char *__wrap_X509_get_default_cert_file(void);
const char *__wrap_X509_get_default_cert_dir(void);

const char *__wrap_X509_get_default_cert_file(void)
{
    return "/nowhere/cert.pem";
}

const char *__wrap_X509_get_default_cert_dir(void)
{
    return built_in;
}

static void clear_environment(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        CHECK_INT(0, unsetenv(names[i]));
    }
}

static void a_usual_place_is_found(void)
{
    clear_environment();
    const char *found = cwist_jq__tls_trust_fallback();
    bool usual = false;

    CHECK(found != NULL); /* the package ca-certificates is here */
    for (const char *const *at = cwist_jq__trust_files; *at != NULL; at++) {
        usual = usual || strcmp(*at, found) == 0;
    }
    CHECK(usual);
}

static void what_openssl_finds_itself_is_left_to_it(void)
{
    clear_environment();
    built_in = "/";
    CHECK_STR(NULL, cwist_jq__tls_trust_fallback());
}

static void what_the_environment_names_stands(void)
{
    clear_environment();
    for (size_t i = 0; i < NAMES; i++) {
        CHECK_INT(0, setenv(names[i], "/nowhere", 1));
        CHECK_STR(NULL, cwist_jq__tls_trust_fallback());
        CHECK_INT(0, unsetenv(names[i]));
        CHECK(cwist_jq__tls_trust_fallback() != NULL);
    }
}

TEST_MAIN({"a_usual_place_is_found", a_usual_place_is_found},
          {"what_openssl_finds_itself_is_left_to_it", what_openssl_finds_itself_is_left_to_it},
          {"what_the_environment_names_stands", what_the_environment_names_stands})
