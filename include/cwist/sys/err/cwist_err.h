/*
 * Error values, as in CWIST. A function returns a small tagged struct; every function of the job
 * queue returns the kind CWIST_ERR_INT16, with the code in error.err_i16.
 *
 * Threads: any thread.
 */
#ifndef CWIST_JQ_ERR_H
#define CWIST_JQ_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include <cwist/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cdef: begin */
typedef enum cwist_errtype_t {
    CWIST_ERR_INT8,
    CWIST_ERR_INT16,
    CWIST_ERR_INT32,
    CWIST_ERR_INT64,
    CWIST_ERR_UINT8,
    CWIST_ERR_UINT16,
    CWIST_ERR_UINT32,
    CWIST_ERR_UINT64
} cwist_errtype_t;

struct cwist_error_value {
    int8_t err_i8;
    int16_t err_i16;
    int32_t err_i32;
    int64_t err_i64;
    uint8_t err_u8;
    uint16_t err_u16;
    uint32_t err_u32;
    uint64_t err_u64;
};

typedef struct cwist_error_t {
    cwist_errtype_t errtype;
    struct cwist_error_value error;
} cwist_error_t;

enum cwist_error_code {
    CWIST_SUCCESS = 0,              /* no error */
    CWIST_FAILURE = -1,             /* the cause has no code of its own */
    CWIST_ERROR_IO = -2,            /* no server could be reached, or the connection broke */
    CWIST_ERROR_NOMEM = -3,         /* this process is out of memory */
    CWIST_ERROR_INVALID_PARAM = -4, /* an argument is out of its range; nothing was sent */
    CWIST_ERROR_PROTOCOL = -5,      /* the server answered something that makes no sense */
    CWIST_ERROR_TIMEOUT = -6        /* no job came in time */
};

/* Frees what an error owns; an error of the job queue owns nothing. NULL is allowed. */
CWIST_API void cwist_error_dispose(cwist_error_t *error);

/*
 * Tells success from failure.
 * Returns: true when the error says success; false for NULL.
 */
CWIST_API bool cwist_error_is_ok(const cwist_error_t *error);
/* cdef: end */

/* A zeroed error of that kind. Inline, so that the library exports no name without its prefix. */
static inline cwist_error_t make_error(cwist_errtype_t type)
{
    cwist_error_t error = {type, {0, 0, 0, 0, 0, 0, 0, 0}};
    return error;
}

#ifdef __cplusplus
}
#endif

#endif
