/* What compilers know beyond C11. */
#ifndef CWIST_JQ_COMPILER_H
#define CWIST_JQ_COMPILER_H

#if defined(__MINGW32__)
#include <stdio.h> /* says by which rules printf's formats are checked */
#endif

#if defined(__MINGW_PRINTF_FORMAT)
#define CWIST_JQ_PRINTF(text, first) __attribute__((format(__MINGW_PRINTF_FORMAT, text, first)))
#elif defined(__GNUC__)
#define CWIST_JQ_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CWIST_JQ_PRINTF(text, first)
#endif

#if defined(__GNUC__)
#define CWIST_JQ_MUST_USE __attribute__((warn_unused_result))
#else
#define CWIST_JQ_MUST_USE
#endif

#endif
