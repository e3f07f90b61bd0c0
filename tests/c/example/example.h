/* What the documentation's example leaves behind for its test. */
#ifndef CWIST_JQ_EXAMPLE_H
#define CWIST_JQ_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>

void example(void);
extern int example_sent;

#endif
