/* Where systems of this platform keep the certificates of the authorities that they trust. */
#ifndef CWIST_JQ_TRUST_H
#define CWIST_JQ_TRUST_H

extern const char *const cwist_jq__trust_files[]; /* the usual places, up to a NULL */
extern const char *const cwist_jq__trust_store; /* an address of a store, or NULL: there is none */

#endif
