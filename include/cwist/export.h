/*
 * The one macro that marks a public symbol; everything else in the library is hidden. Built into
 * another module (CWIST_JQ_STATIC), the public symbols are hidden too.
 */
#ifndef CWIST_JQ_EXPORT_H
#define CWIST_JQ_EXPORT_H

#if defined(_WIN32) && defined(CWIST_JQ_BUILDING)
#define CWIST_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(CWIST_JQ_STATIC)
#define CWIST_API __declspec(dllimport)
#elif defined(__GNUC__) && !defined(CWIST_JQ_STATIC)
#define CWIST_API __attribute__((visibility("default")))
#else
#define CWIST_API
#endif

#endif
