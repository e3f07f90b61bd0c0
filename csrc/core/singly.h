/* Batches for a backend that takes one job at a time. */
#ifndef CWIST_JQ_SINGLY_H
#define CWIST_JQ_SINGLY_H

#include "core/backend.h"

#define CWIST_JQ_SINGLY(call)                                                                      \
    do {                                                                                           \
        int first = CWIST_SUCCESS;                                                                 \
        for (size_t i = 0; i < count; i++) {                                                       \
            if (first != CWIST_SUCCESS) {                                                          \
                codes[i] = CWIST_ERROR_NOT_SENT;                                                   \
            } else {                                                                               \
                codes[i] = first = (call);                                                         \
            }                                                                                      \
        }                                                                                          \
        return first;                                                                              \
    } while (0)

#endif
