/* The one place that takes and gives back memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

void *cwist_jq__alloc(size_t size)
{
    return malloc(size != 0 ? size : 1);
}

void *cwist_jq__calloc(size_t count, size_t size)
{
    return calloc(count != 0 ? count : 1, size != 0 ? size : 1);
}

void *cwist_jq__realloc(void *block, size_t size)
{
    return realloc(block, size != 0 ? size : 1);
}

void cwist_jq__free(void *block)
{
    free(block);
}

char *cwist_jq__strndup(const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? cwist_jq__alloc(len + 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

char *cwist_jq__strdup(const char *text)
{
    return cwist_jq__strndup(text, strlen(text));
}

char *cwist_jq__format(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);

    char *text = len >= 0 ? cwist_jq__alloc((size_t)len + 1) : NULL;
    if (text != NULL) {
        va_start(args, format);
        (void)vsnprintf(text, (size_t)len + 1, format, args);
        va_end(args);
    }
    return text;
}
