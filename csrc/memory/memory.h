/*
 * The engine memory://: queues that live in this process, for programs that test themselves without
 * a server. A store has queues by name, a queue its jobs, and one lock guards all of a store. Only
 * calls change something: who claims or enqueues first brings back what is due or lapsed.
 *
 * The functions below want the store's lock, unless they say otherwise.
 */
#ifndef CWIST_JQ_MEMORY_H
#define CWIST_JQ_MEMORY_H

#include "core/backend.h"
#include "platform/condition.h"

/* ---- bodies (body.c): what does not change of a job; its deliveries share it ---- */

typedef struct cwist_jq__memory_body {
    atomic_uint references;
    const char *type; /* all strings end in NUL; "": none */
    size_t type_len;
    const char *key; /* NULL: none */
    size_t key_len;
    const cwist_jq__field *headers;
    size_t header_count;
    const void *payload;
    size_t payload_len;
} cwist_jq__memory_body;

/* No lock is wanted. NULL: no memory. */
cwist_jq__memory_body *cwist_jq__memory_body_new(const cwist_job_item_t *item);
void cwist_jq__memory_body_ref(cwist_jq__memory_body *body);
void cwist_jq__memory_body_unref(void *body);

/* ---- tables (table.c): what is found by a number, of which several things may have the same ----
 */

/* Part of a thing in a table. */
typedef struct cwist_jq__memory_link {
    struct cwist_jq__memory_link *next;
    uint64_t hash;
} cwist_jq__memory_link;

typedef struct cwist_jq__memory_table {
    cwist_jq__memory_link **places;
    size_t size; /* 0 or a power of two */
    size_t count;
} cwist_jq__memory_table;

/* Makes room for one more; false: no memory. */
bool cwist_jq__memory_table_reserve(cwist_jq__memory_table *table);
void cwist_jq__memory_table_add(cwist_jq__memory_table *table, cwist_jq__memory_link *link,
                                uint64_t hash);
void cwist_jq__memory_table_remove(cwist_jq__memory_table *table, cwist_jq__memory_link *link);
/* The first with that hash, and the next one; NULL: none. */
cwist_jq__memory_link *cwist_jq__memory_table_first(const cwist_jq__memory_table *table,
                                                    uint64_t hash);
cwist_jq__memory_link *cwist_jq__memory_table_next(const cwist_jq__memory_link *link);
void cwist_jq__memory_table_clear(cwist_jq__memory_table *table);

/* ---- workers (worker.c): the holders of jobs by name, for as long as somebody knows them ---- */

typedef struct cwist_jq__memory_worker {
    struct cwist_jq__memory_worker *next;
    unsigned references;
    unsigned waiting; /* claims under way */
    size_t held;      /* jobs claimed */
    char name[];
} cwist_jq__memory_worker;

/* ---- jobs (job.c) ---- */

typedef enum cwist_jq__memory_state {
    CWIST_JQ_MEMORY_READY,
    CWIST_JQ_MEMORY_DELAYED,
    CWIST_JQ_MEMORY_CLAIMED,
    CWIST_JQ_MEMORY_DEAD
} cwist_jq__memory_state;

typedef struct cwist_jq__memory_job {
    cwist_jq__memory_link by_id;  /* hash: the id; the first member */
    cwist_jq__memory_link by_key; /* while has_key */
    struct cwist_jq__memory_job *next;
    struct cwist_jq__memory_job *before;
    cwist_jq__memory_body *body;
    cwist_jq__memory_worker *worker;    /* has it; NULL: it is not claimed */
    cwist_jq__memory_worker *lapsed_by; /* let its last lease run out; NULL: nobody did */
    uint64_t delivery;                  /* number of the last one */
    uint64_t moment;   /* ready or claimed since, or due then; a moment of cwist_jq__now() */
    uint64_t first_ms; /* since 1970 */
    uint64_t place;    /* delayed: in the heap; dead: the letter's number */
    uint32_t attempts; /* deliveries, the present one included */
    cwist_jq__memory_state state;
    bool has_key; /* no other live job may have the same */
} cwist_jq__memory_job;

/* In the order in which they came. */
typedef struct cwist_jq__memory_list {
    cwist_jq__memory_job *first;
    cwist_jq__memory_job *last;
    size_t count;
} cwist_jq__memory_list;

void cwist_jq__memory_list_add(cwist_jq__memory_list *list, cwist_jq__memory_job *job);
void cwist_jq__memory_list_remove(cwist_jq__memory_list *list, cwist_jq__memory_job *job);

/* No lock is wanted for both. */
cwist_jq__memory_job *cwist_jq__memory_job_new(const cwist_job_item_t *item);
void cwist_jq__memory_job_free(cwist_jq__memory_job *job);

/* ---- what waits for its time (heap.c): the job that is due first is at place 0 ---- */

typedef struct cwist_jq__memory_heap {
    cwist_jq__memory_job **at;
    size_t count;
    size_t room;
} cwist_jq__memory_heap;

/* Makes room for one more; false: no memory. */
bool cwist_jq__memory_heap_reserve(cwist_jq__memory_heap *heap);
void cwist_jq__memory_heap_add(cwist_jq__memory_heap *heap, cwist_jq__memory_job *job);
void cwist_jq__memory_heap_remove(cwist_jq__memory_heap *heap, cwist_jq__memory_job *job);

/* ---- dead letters (letters.c), in the order of their deaths, each with a number ---- */

typedef struct cwist_jq__memory_letter {
    uint64_t number;
    cwist_jq__memory_job *job; /* NULL: it is gone */
    cwist_jq__memory_worker *consumer;
    char *reason; /* NULL: none */
    uint64_t died_ms;
    cwist_jq__cause cause;
} cwist_jq__memory_letter;

typedef struct cwist_jq__memory_letters {
    cwist_jq__memory_letter *at;
    size_t begin; /* neither the first nor the last is one that is gone */
    size_t end;
    size_t room;
    size_t count; /* those that are there */
    uint64_t last_number;
} cwist_jq__memory_letters;

bool cwist_jq__memory_letters_reserve(cwist_jq__memory_letters *letters);
/* Adds a letter with the next number. */
cwist_jq__memory_letter *cwist_jq__memory_letters_add(cwist_jq__memory_letters *letters);
/* Takes a letter out. Its consumer and its reason must be given back before. */
void cwist_jq__memory_letters_remove(cwist_jq__memory_letters *letters,
                                     cwist_jq__memory_letter *letter);
/* The letter with that number; NULL: it is not there. */
cwist_jq__memory_letter *cwist_jq__memory_letters_find(const cwist_jq__memory_letters *letters,
                                                       uint64_t number);
/* The next one after (or before) a number that may be gone; NULL: none. */
cwist_jq__memory_letter *cwist_jq__memory_letters_after(const cwist_jq__memory_letters *letters,
                                                        uint64_t number);
cwist_jq__memory_letter *cwist_jq__memory_letters_before(const cwist_jq__memory_letters *letters,
                                                         uint64_t number);

/* ---- queues and stores (store.c) ---- */

typedef struct cwist_jq__memory_queue {
    struct cwist_jq__memory_queue *next;
    char *name;
    cwist_jq__condition changed; /* a job is ready, or a claim may go on */
    cwist_jq__memory_table ids;
    cwist_jq__memory_table keys;
    cwist_jq__memory_list ready;
    cwist_jq__memory_list claimed; /* the lease that ends first is the first */
    cwist_jq__memory_heap delayed;
    cwist_jq__memory_letters dead;
    cwist_jq__memory_worker *workers;
    uint64_t last_id;
    uint64_t last_delivery;
    uint64_t visibility_ms; /* 0: nobody claimed yet */
    bool paused;
} cwist_jq__memory_queue;

typedef struct cwist_jq__memory_store {
    struct cwist_jq__memory_store *next; /* of those with a name */
    char *name;                          /* NULL: it belongs to one connection */
    unsigned references;                 /* guarded by the lock of all stores */
    uint64_t began_ms;                   /* since 1970, at `began` of the monotonic clock */
    uint64_t began;
    cwist_jq__mutex lock;
    cwist_jq__memory_queue *queues;
} cwist_jq__memory_store;

/* The store of that name, or one of the caller's own for NULL; give it back. No lock is wanted. */
cwist_jq__memory_store *cwist_jq__memory_store_get(const char *name);
void cwist_jq__memory_store_give(cwist_jq__memory_store *store);
/* The time of day by the store's clock, which is never set back. No lock is wanted. */
uint64_t cwist_jq__memory_time(const cwist_jq__memory_store *store, uint64_t now);
/* The queue of that name; made when it is missing. NULL: no memory. */
cwist_jq__memory_queue *cwist_jq__memory_queue_get(cwist_jq__memory_store *store, const char *name);

/* The worker of that name, with a reference; NULL: no memory. */
cwist_jq__memory_worker *cwist_jq__memory_worker_get(cwist_jq__memory_queue *queue,
                                                     const char *name);
void cwist_jq__memory_worker_ref(cwist_jq__memory_worker *worker);
/* NULL is allowed. */
void cwist_jq__memory_worker_unref(cwist_jq__memory_queue *queue, cwist_jq__memory_worker *worker);

/* What a queue handle has. */
typedef struct cwist_jq__memory_handle {
    cwist_jq__memory_store *store; /* the connection's reference */
    cwist_jq__memory_queue *queue;
    cwist_jq__memory_worker *worker;
    bool settled; /* it has claimed, and so set the visibility */
} cwist_jq__memory_handle;

cwist_jq__memory_handle *cwist_jq__memory_of(const cwist_jq__queue *queue);
/* Takes the store's lock; the handle learns the visibility. */
cwist_jq__memory_queue *cwist_jq__memory_enter(cwist_jq__queue *queue);
/* Wakes a blocked claim when there is a job for it, and gives the lock back. */
void cwist_jq__memory_leave(cwist_jq__queue *queue);
/* The job of an id, dead ones too; NULL: none. */
cwist_jq__memory_job *cwist_jq__memory_find(const cwist_jq__memory_queue *queue, uint64_t id);
/* Reads a number as this engine writes them: no sign, no leading zero. False: it is none. */
bool cwist_jq__memory_number(const char *text, size_t len, uint64_t *number);

/* ---- moves (move.c): a job is in one state ---- */

/* Puts a job that is nowhere where it belongs, or takes it from there. */
void cwist_jq__memory_to_ready(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job,
                               uint64_t since);
/* Room in the heap is reserved. */
void cwist_jq__memory_to_delayed(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job,
                                 uint64_t due);
void cwist_jq__memory_to_claimed(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job,
                                 cwist_jq__memory_worker *worker, uint64_t now);
void cwist_jq__memory_take_out(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job);
/* The job's key may be used again. */
void cwist_jq__memory_free_key(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job);
/* The job is gone for good. It is in no state any more. */
void cwist_jq__memory_forget(cwist_jq__memory_queue *queue, cwist_jq__memory_job *job);

/* Makes ready what is due or lapsed, in the order of those moments. */
void cwist_jq__memory_recover(cwist_jq__memory_queue *queue, uint64_t now);
/* When something will be due or lapse; CWIST_JQ_NEVER: nothing that is known. */
uint64_t cwist_jq__memory_next_moment(const cwist_jq__memory_queue *queue);
/* Jobs that are not dead. */
uint64_t cwist_jq__memory_live(const cwist_jq__memory_queue *queue);

/* ---- operations; they take the lock themselves (backend.h says what each does) ---- */

int cwist_jq__memory_check_size(cwist_jq__queue *queue, const cwist_job_item_t *item);
int cwist_jq__memory_enqueue(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                             bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored);

int cwist_jq__memory_claim_start(cwist_jq__claim *claim);
int cwist_jq__memory_claim_wait(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs,
                                size_t *count);
int cwist_jq__memory_ack_and_poll(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                                  int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got);
void cwist_jq__memory_claim_end(cwist_jq__claim *claim);

int cwist_jq__memory_ack(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                         uint64_t deadline, int *codes);
int cwist_jq__memory_retry(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                           const uint64_t *delays_ms, uint64_t deadline, int *codes);
int cwist_jq__memory_release(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                             uint64_t delay_ms, uint64_t deadline, int *codes);
int cwist_jq__memory_bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                          cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes);
int cwist_jq__memory_extend(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                            uint64_t deadline, int *codes);

int cwist_jq__memory_dead_count(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count);
int cwist_jq__memory_dead_list(cwist_jq__queue *queue, const char *after, size_t most,
                               bool oldest_first, uint64_t deadline, cwist_job_dead_page_t *page,
                               bool *more);
int cwist_jq__memory_dead_find(cwist_jq__queue *queue, const char *id, bool payload,
                               uint64_t deadline, cwist_job_dead_page_t *page);
int cwist_jq__memory_dead_requeue(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                  size_t count, uint64_t deadline, int *codes);
int cwist_jq__memory_dead_remove(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                 size_t count, uint64_t deadline, int *codes);

int cwist_jq__memory_stats(cwist_jq__queue *queue, uint64_t deadline, cwist_job_stats_t *stats);
int cwist_jq__memory_purge(cwist_jq__queue *queue, uint64_t deadline, uint64_t *mark,
                           uint64_t *count, bool *more);
int cwist_jq__memory_pause(cwist_jq__queue *queue, bool paused, uint64_t deadline);

#endif
