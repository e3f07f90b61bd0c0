/* The Windows headers in the order that they need, without what nobody here uses. */
#ifndef CWIST_JQ_WINDOWS_H
#define CWIST_JQ_WINDOWS_H

#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00 /* Windows 10 */
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif

#include <winsock2.h>
#include <ws2tcpip.h>

#include <mstcpip.h>
#include <windows.h>

#endif
