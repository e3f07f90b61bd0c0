/* Facts about this process. */
#ifndef CWIST_JQ_PROCESS_H
#define CWIST_JQ_PROCESS_H

#include <stddef.h>
#include <stdint.h>

uint64_t cwist_jq__process_id(void);

/* The host's name, shortened to fit, with a final NUL. */
void cwist_jq__host_name(char *out, size_t size);

#endif
