/* SIGPIPE, where there is one. Sockets of our own never raise it; other libraries may. */
#ifndef CWIST_JQ_SIGNALS_H
#define CWIST_JQ_SIGNALS_H

/* Runs start(), and then puts the program's own handling of SIGPIPE back. */
void cwist_jq__keep_sigpipe(void (*start)(void));

/* Ignores SIGPIPE from now on, unless the program handles it. */
void cwist_jq__ignore_sigpipe(void);

#endif
