/* Reference counts. The last one to let go finishes the object. */
#include "core/internal.h"

void cwist_jq__object_init(void *object, cwist_jq__kind kind, void (*finish)(void *object))
{
    cwist_jq__object *self = object;
    atomic_init(&self->references, 1);
    self->kind = kind;
    self->finish = finish;
}

void cwist_jq__ref(void *object)
{
    cwist_jq__object *self = object;
    atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
}

void cwist_jq__unref(void *object)
{
    cwist_jq__object *self = object;
    if (self != NULL &&
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) {
        self->finish(self);
    }
}
