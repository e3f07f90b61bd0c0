#include "platform/trust.h"

#include <stddef.h>

const char *const cwist_jq__trust_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Gentoo */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* older RHEL */
    "/etc/ssl/ca-bundle.pem",                            /* SUSE */
    "/etc/ssl/cert.pem",                                 /* Alpine, macOS, OpenBSD, FreeBSD */
    "/usr/local/share/certs/ca-root-nss.crt",            /* FreeBSD */
    "/opt/homebrew/etc/openssl@3/cert.pem",              /* Homebrew */
    "/usr/local/etc/openssl@3/cert.pem",                 /* Homebrew on Intel */
    NULL,
};

const char *const cwist_jq__trust_store = NULL;
