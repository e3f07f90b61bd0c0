/* Process facts from POSIX. */
#include <string.h>
#include <unistd.h>

#include "platform/process.h"

uint64_t cwist_jq__process_id(void)
{
    return (uint64_t)getpid();
}

void cwist_jq__host_name(char *out, size_t size)
{
    if (gethostname(out, size) != 0 || memchr(out, '\0', size) == NULL) {
        out[size - 1] = '\0';
    }
    if (out[0] == '\0') {
        (void)memcpy(out, "host", size < 5 ? 1 : 5);
    }
}
