#include "platform/trust.h"

#include <stddef.h>

const char *const cwist_jq__trust_files[] = {NULL};

const char *const cwist_jq__trust_store = "org.openssl.winstore://"; /* OpenSSL 3.2 reads it */
