/* What the public functions share: error values, handles, and the words around an error. */
#ifndef CWIST_JQ_API_H
#define CWIST_JQ_API_H

#include "core/internal.h"

/* The public error value of a status. */
cwist_error_t cwist_jq__result(int code);

/* ---- handles (handle.c) ----
 *
 * A public handle is not an address but a number for a place in a table, with a generation. So a
 * handle that was destroyed, belongs to a forked parent, or was never one of ours is told apart
 * from a live one for certain, and never touched.
 */

/* Makes a handle that owns one reference of the object. NULL: no memory. */
void *cwist_jq__handle_new(void *object);

/*
 * The object behind a handle, with a reference added that the caller must give back. CLOSED: it was
 * destroyed or belongs to another process; INVALID_PARAM: it is NULL or of another kind. `what`
 * names it in the text ("queue").
 */
int cwist_jq__handle_get(void **object, const void *handle, cwist_jq__kind kind,
                         const char *what) CWIST_JQ_MUST_USE;

/* The same without a reference, for reads that end before the handle may be consumed; or NULL. */
void *cwist_jq__handle_peek(const void *handle, cwist_jq__kind kind);

/* Makes the handle invalid and gives its reference to the caller. Results as handle_get. */
int cwist_jq__handle_take(void **object, const void *handle, cwist_jq__kind kind,
                          const char *what) CWIST_JQ_MUST_USE;

#endif
