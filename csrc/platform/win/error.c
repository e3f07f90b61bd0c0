#include "platform/win/error.h"

#include "core/internal.h"
#include "platform/win/windows.h"

#define TEXT_SIZE 192

/* The system's text for an error, in UTF-8, without the full stop and the line's end; or "". */
static void system_text(char *out, int size, int error)
{
    wchar_t wide[TEXT_SIZE];
    DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
    DWORD len = FormatMessageW(flags, NULL, (DWORD)error, 0, wide, TEXT_SIZE, NULL);

    while (len > 0 && (wide[len - 1] <= L' ' || wide[len - 1] == L'.')) {
        len--;
    }
    int bytes =
        len > 0 ? WideCharToMultiByte(CP_UTF8, 0, wide, (int)len, out, size - 1, NULL, NULL) : 0;
    out[bytes] = '\0';
}

int cwist_jq__win_io_error(const char *what, int error)
{
    char text[3 * TEXT_SIZE + 1]; /* a unit of UTF-16 is at most three bytes of UTF-8 */

    system_text(text, sizeof text, error);
    return text[0] != '\0' ? cwist_jq__fail(CWIST_ERROR_IO, "%s: %s", what, text)
                           : cwist_jq__fail(CWIST_ERROR_IO, "%s: Windows error %d", what, error);
}
