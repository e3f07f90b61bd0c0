/* Error texts of Windows. */
#ifndef CWIST_JQ_WIN_ERROR_H
#define CWIST_JQ_WIN_ERROR_H

/* Sets the thread's error text to "what: the system's own words" and returns IO. */
int cwist_jq__win_io_error(const char *what, int error);

#endif
