/* Process facts from Windows. */
#include "platform/process.h"

#include <stdio.h>

#include "platform/win/windows.h"

uint64_t cwist_jq__process_id(void)
{
    return (uint64_t)GetCurrentProcessId();
}

void cwist_jq__host_name(char *out, size_t size)
{
    char name[256] = "";
    DWORD len = sizeof name;

    if (!GetComputerNameExA(ComputerNameDnsHostname, name, &len) || name[0] == '\0') {
        (void)snprintf(name, sizeof name, "host");
    }
    (void)snprintf(out, size, "%s", name);
}
