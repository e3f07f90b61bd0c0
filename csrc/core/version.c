/* The version of the library at run time. */
#include <cwist/version.h>

#include "core/internal.h"

#define QUOTED(x) #x
#define VERSION(major, minor, patch) QUOTED(major) "." QUOTED(minor) "." QUOTED(patch)

const char *cwist_job_version(void)
{
    return VERSION(CWIST_JQ_VERSION_MAJOR, CWIST_JQ_VERSION_MINOR, CWIST_JQ_VERSION_PATCH);
}
