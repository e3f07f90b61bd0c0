/* The performance counter, monotonic and the same on all processors, and the time of day. */
#include "platform/clock.h"

#include "platform/win/windows.h"

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define EPOCH_MS UINT64_C(11644473600000) /* from 1601, where the system counts from, to 1970 */
#define LONGEST_MS 60000                  /* below what Sleep() takes for ever */

uint64_t cwist_jq__now(void)
{
    LARGE_INTEGER frequency;
    LARGE_INTEGER count;

    (void)QueryPerformanceFrequency(&frequency); /* neither fails since Windows XP */
    (void)QueryPerformanceCounter(&count);
    uint64_t per_second = (uint64_t)frequency.QuadPart;
    uint64_t ticks = (uint64_t)count.QuadPart;
    return ticks / per_second * SECOND + ticks % per_second * SECOND / per_second;
}

uint64_t cwist_jq__wall_ms(void)
{
    FILETIME time; /* in steps of 100 ns */

    GetSystemTimeAsFileTime(&time);
    return ((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) / 10000 - EPOCH_MS;
}

void cwist_jq__sleep_until(uint64_t when)
{
    for (uint64_t now = cwist_jq__now(); now < when; now = cwist_jq__now()) {
        uint64_t ms = (when - now + MS - 1) / MS;
        Sleep(ms > LONGEST_MS ? LONGEST_MS : (DWORD)ms);
    }
}
