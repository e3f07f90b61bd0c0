/* One line to the log of a connection. */
#include <stdio.h>

#include "core/internal.h"

void cwist_jq__log(cwist_jq__conn *conn, int level, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20) {
            *at = ' ';
        }
    }
    if (conn->log != NULL) {
        conn->log(conn->log_context, level, text);
    } else if (level == CWIST_JOB_LOG_WARNING) {
        (void)fprintf(stderr, "cwist_jq: %s\n", text);
    }
}
