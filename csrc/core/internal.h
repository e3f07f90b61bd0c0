/*
 * What the core and the backends share: objects, errors, time, log, names. Nothing here knows an
 * engine. Every function may be called from any thread unless its comment says otherwise.
 *
 * Inside the library a function returns a status: CWIST_SUCCESS or one of the negative codes of the
 * public headers. The lowest layer that knows the cause sets the text with cwist_jq__fail(); the
 * layers above pass the status on. The public functions add operation, queue and server.
 */
#ifndef CWIST_JQ_INTERNAL_H
#define CWIST_JQ_INTERNAL_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cwist/sys/job/durable_queue_ext.h>

#include "platform/compiler.h"

/* ---- memory (alloc.c): NULL means out of memory; sizes that overflow are out of memory ---- */

void *cwist_jq__alloc(size_t size);
void *cwist_jq__calloc(size_t count, size_t size);
void *cwist_jq__realloc(void *block, size_t size);
void cwist_jq__free(void *block);
char *cwist_jq__strdup(const char *text);
char *cwist_jq__strndup(const char *text, size_t len);
char *cwist_jq__format(const char *format, ...) CWIST_JQ_PRINTF(1, 2);

/* ---- errors (error.c) ---- */

/* Sets the thread's error text, control characters made harmless, and returns code. */
int cwist_jq__fail(int code, const char *format, ...) CWIST_JQ_PRINTF(2, 3);
/* cwist_jq__fail(CWIST_ERROR_NOMEM, ...) with the usual text. */
int cwist_jq__no_memory(void);
/* The thread's error text so far, for a layer that wraps or logs it. */
const char *cwist_jq__error_text(void);
/* Puts a prefix before the thread's error text. */
void cwist_jq__error_prefix(const char *format, ...) CWIST_JQ_PRINTF(1, 2);

#define CWIST_JQ_TEXT_SIZE 512

/* The failure of one item among several, with its text. Zero the code before use. */
typedef struct cwist_jq__failure {
    int code; /* SUCCESS: none yet */
    size_t item;
    char text[CWIST_JQ_TEXT_SIZE];
} cwist_jq__failure;

/* Keeps the code and the thread's text, unless an earlier item failed too. */
void cwist_jq__failure_note(cwist_jq__failure *failure, size_t item, int code);
/* Sets the text again and returns the code; SUCCESS when nothing failed. */
int cwist_jq__failure_tell(const cwist_jq__failure *failure);

/* ---- time: monotonic nanoseconds; CWIST_JQ_NEVER is a deadline that does not come ---- */

#define CWIST_JQ_NEVER UINT64_MAX
#define CWIST_JQ_MS UINT64_C(1000000)

uint64_t cwist_jq__after_ms(uint64_t ms);              /* now + ms, saturating */
uint64_t cwist_jq__add_ms(uint64_t when, uint64_t ms); /* when + ms, saturating */
uint64_t cwist_jq__earlier(uint64_t a, uint64_t b);
/* The deadline of the first of so many tries in a row, so that it leaves time for the others. */
uint64_t cwist_jq__share_of_time(uint64_t deadline, unsigned tries);
bool cwist_jq__passed(uint64_t deadline);
uint64_t cwist_jq__ms_left(uint64_t deadline); /* rounded up, 0 when passed */

/* ---- back-off (backoff.c): exponential from 10 ms to a cap of 1 s, with full jitter ---- */

typedef struct cwist_jq__backoff {
    unsigned tries;
} cwist_jq__backoff;

/* The moment of the next try, never after deadline. Start with a zeroed struct. */
uint64_t cwist_jq__backoff_next(cwist_jq__backoff *backoff, uint64_t deadline);

/* ---- random bits (random.c) ---- */

/* For unique names and jitter; not for secrets. Differs in a forked child. */
uint64_t cwist_jq__random(void);

/* ---- what belongs to one process (forks.c) ---- */

/*
 * To be called before anything that `owner` guards is used; *owner begins as 0. In a forked child
 * it calls start_anew() once, because a thread that is only in the parent may hold the locks.
 */
void cwist_jq__enter_process(_Atomic uint64_t *owner, void (*start_anew)(void));

/* ---- objects (object.c): counted references, and handles that outlive them safely ---- */

typedef enum cwist_jq__kind {
    CWIST_JQ_KIND_CONN = 1,
    CWIST_JQ_KIND_QUEUE,
    CWIST_JQ_KIND_JOB,
    CWIST_JQ_KIND_CLAIM
} cwist_jq__kind;

/* First member of every object that has a public handle. */
typedef struct cwist_jq__object {
    atomic_uint references;
    cwist_jq__kind kind;
    void (*finish)(void *object); /* called once, when the last reference goes */
} cwist_jq__object;

void cwist_jq__object_init(void *object, cwist_jq__kind kind, void (*finish)(void *object));
void cwist_jq__ref(void *object);
void cwist_jq__unref(void *object); /* NULL is allowed */

/* ---- connections (conn.c) ---- */

typedef struct cwist_jq__ops cwist_jq__ops; /* backend.h */

typedef enum cwist_jq__scheme {
    CWIST_JQ_SCHEME_REDIS,
    CWIST_JQ_SCHEME_REDISS,
    CWIST_JQ_SCHEME_UNIX,
    CWIST_JQ_SCHEME_NATS,
    CWIST_JQ_SCHEME_TLS,
    CWIST_JQ_SCHEME_MEMORY
} cwist_jq__scheme;

/* What the query of a rediss:// or tls:// URL says. NULL: not given. */
typedef struct cwist_jq__tls_options {
    char *ca;        /* a file with the authorities to trust instead of the system's */
    char *cert;      /* a file with our certificate and those between it and its authority */
    char *key;       /* a file with its key; it may stand in `cert` too */
    bool unverified; /* any certificate of the server will do */
} cwist_jq__tls_options;

/* A parsed URL (url.c). Strings are owned by it; credentials are decoded. */
typedef struct cwist_jq__url {
    cwist_jq__scheme scheme;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
    char *host;     /* first host; NULL for a unix socket and a store in memory */
    int port;
    char *path;    /* unix socket */
    char *store;   /* the name of a store in memory; NULL: one of the connection's own */
    int database;  /* Redis */
    char *servers; /* NATS: "nats://a:4222,nats://b:4222", no credentials */
    cwist_jq__tls_options tls;
    char *label; /* the URL without credentials and query, for texts */
} cwist_jq__url;

int cwist_jq__url_parse(cwist_jq__url *url, const char *text) CWIST_JQ_MUST_USE;
void cwist_jq__url_clear(cwist_jq__url *url);
/* Whether the connection is to be encrypted. */
bool cwist_jq__url_is_tls(const cwist_jq__url *url);
/* How much of a host a certificate carries: not the dot that ends a full name. Never nothing. */
size_t cwist_jq__certificate_name_len(const char *host, size_t len);

struct cwist_jq__lane; /* renewals.c */

typedef struct cwist_jq__conn {
    cwist_jq__object object;
    const cwist_jq__ops *ops;
    cwist_jq__url url;
    uint64_t connect_timeout_ms;
    uint64_t operation_timeout_ms;
    cwist_job_log_fn log;
    void *log_context;
    struct cwist_jq__lane *lane; /* renewals.c; guarded by the lock there */
    void *impl;                  /* the backend's own part */
} cwist_jq__conn;

/* Writes one line to the log of the connection. Hold no lock that a queue operation takes. */
void cwist_jq__log(cwist_jq__conn *conn, int level, const char *format, ...) CWIST_JQ_PRINTF(3, 4);

/* ---- queues (queue.c) ---- */

/* What a handle did since it was opened. */
typedef struct cwist_jq__counters {
    _Atomic uint64_t enqueued;
    _Atomic uint64_t delivered;
    _Atomic uint64_t acked;
    _Atomic uint64_t nacked;
    _Atomic uint64_t released;
    _Atomic uint64_t buried;
} cwist_jq__counters;

struct cwist_jq__job;

/* The jobs of a queue whose leases are kept (renewals.c); guarded by the lock there. */
typedef struct cwist_jq__kept_jobs {
    struct cwist_jq__job *first; /* the most urgent one; NULL: none */
    struct cwist_jq__job *last;
    struct cwist_jq__queue *before; /* other queues that have such jobs */
    struct cwist_jq__queue *after;
} cwist_jq__kept_jobs;

typedef struct cwist_jq__queue {
    cwist_jq__object object;
    cwist_jq__conn *conn; /* counted */
    char *name;
    char *consumer; /* never NULL: made unique when the caller gave none */
    bool consumer_is_ours;
    uint64_t visibility_ms; /* what this handle asks for */
    uint32_t max_retries;
    uint64_t retry_delay_ms;
    int retry_backoff; /* of enum cwist_job_backoff */
    uint64_t retry_delay_max_ms;
    uint32_t retry_jitter_percent;
    uint64_t max_length; /* 0: none */
    bool auto_renew;
    cwist_jq__counters counters;
    cwist_jq__kept_jobs kept;
    _Atomic uint64_t server_visibility_ms; /* what the server was last seen to keep; 0: unknown */
    atomic_bool closed;                    /* destroyed: blocked claims must end */
    atomic_uint interrupts;                /* counts cwist_job_queue_interrupt() calls */
    void *impl;                            /* the backend's own part */
} cwist_jq__queue;

/* The visibility by which leases are reckoned: the smaller of the handle's and the server's. */
uint64_t cwist_jq__lease_ms(const cwist_jq__queue *queue);

/*
 * A backend tells what visibility the server kept when this handle's claim settled it. The first
 * difference is logged as one warning with both values.
 */
void cwist_jq__visibility_taken_over(cwist_jq__queue *queue, uint64_t previous_ms);

/* ---- names (names.c): every key, subject and stream name is made here ---- */

/* "cwist:jq:<name>:" or, on a cluster, "cwist:jq:{<name>}:". Yours to free; NULL: no memory. */
char *cwist_jq__redis_prefix(const char *queue, bool cluster);
/* The stream name: the queue name with . as =2E and : as =3A. Yours to free; NULL: no memory. */
char *cwist_jq__nats_stream(const char *queue);

#define CWIST_JQ_GROUP "cwist-jq" /* Redis consumer group and NATS durable */

/* ---- rules: each says what is wrong and what is allowed ---- */

#define CWIST_JQ_TYPE_MAX 255
#define CWIST_JQ_REASON_MAX 4096
#define CWIST_JQ_KEY_MAX 255
#define CWIST_JQ_HEADER_NAME_MAX 128
#define CWIST_JQ_HEADER_VALUE_MAX 4096
#define CWIST_JQ_MAX_ATTEMPTS 1000000
#define CWIST_JQ_DELAY_MAX_MS (UINT64_C(365) * 24 * 3600 * 1000)

/*
 * Checks a text (text.c): up to `most` bytes of UTF-8, without control characters if `plain`.
 * `field` names it.
 */
int cwist_jq__check_text(const char *field, const char *text, size_t len, size_t most,
                         bool plain) CWIST_JQ_MUST_USE;

/* Checks a job to store, except its size (item.c). */
int cwist_jq__check_item(const cwist_job_item_t *item) CWIST_JQ_MUST_USE;
/* Checks a type as written on the wire; "" is allowed and means none. */
int cwist_jq__check_type(const char *type, size_t len) CWIST_JQ_MUST_USE;
int cwist_jq__check_delay(uint64_t delay_ms) CWIST_JQ_MUST_USE;
int cwist_jq__check_reason(const char *reason) CWIST_JQ_MUST_USE;

/* Whether a queue's name may have it (options.c). */
bool cwist_jq__name_char(char c);
/* Checks the options and copies them into the queue's fields, defaults filled in (options.c). */
int cwist_jq__apply_opts(cwist_jq__queue *queue,
                         const cwist_job_queue_opts_t *opts) CWIST_JQ_MUST_USE;
/* The same for the further options, after the others; NULL: the defaults. */
int cwist_jq__apply_ext_opts(cwist_jq__queue *queue,
                             const cwist_job_queue_ext_opts_t *ext) CWIST_JQ_MUST_USE;

/* ---- the retry policy (retry.c) ---- */

/* How long a job waits that was nacked in its delivery number `attempts`. */
uint64_t cwist_jq__retry_delay_ms(const cwist_jq__queue *queue, uint32_t attempts);

/* ---- jobs (job.c) ---- */

/* A job in the list of those whose leases are kept (renewals.c); guarded by the lock there. */
typedef struct cwist_jq__kept_job {
    struct cwist_jq__job *before;
    struct cwist_jq__job *after;
    uint64_t due;   /* when its lease is to be extended */
    bool under_way; /* it is being extended */
} cwist_jq__kept_job;

/*
 * One delivery of one job. The strings live in the same block as the struct, and so does the
 * payload, unless it is an object of the backend, `body`, that is freed with the job.
 */
typedef struct cwist_jq__job {
    cwist_jq__object object;
    cwist_jq__queue *queue; /* counted */
    const char *id;
    const char *type;    /* NULL: none */
    const char *receipt; /* names this delivery to the server: entry id, ack subject */
    const void *payload;
    size_t payload_len;
    const char *key; /* dedupe key; NULL: none */
    const cwist_job_header_t *headers;
    size_t header_count;
    uint32_t attempts;             /* deliveries, this one included */
    const char *malformed;         /* NULL, or the rule that the stored job breaks */
    atomic_bool lost;              /* the server said that the delivery was given away */
    _Atomic uint64_t lease_starts; /* by the local clock, as lease_ends */
    _Atomic uint64_t lease_ends;
    atomic_bool over;    /* the handle is consumed */
    atomic_bool is_kept; /* in the list of renewals.c */
    cwist_jq__kept_job kept;
    void *body; /* NULL: none */
    void (*body_free)(void *body);
} cwist_jq__job;

/* A header as it was read. The strings need not end in NUL. */
typedef struct cwist_jq__field {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
} cwist_jq__field;

/* What a backend knows of a delivery. The strings need not end in NUL and are copied. */
typedef struct cwist_jq__delivery {
    const char *id;
    size_t id_len;
    const char *type; /* NULL: none; "" is taken as none */
    size_t type_len;
    const char *receipt;
    size_t receipt_len;
    const char *key; /* dedupe key; NULL: none */
    size_t key_len;
    const cwist_jq__field *headers;
    size_t header_count;
    const void *payload; /* points into body; without a body it is copied */
    size_t payload_len;
    uint32_t attempts;
    const char *malformed; /* a static text, or NULL */
    uint64_t lease_starts;
    uint64_t lease_ends;
    void *body; /* NULL: none */
    void (*body_free)(void *body);
} cwist_jq__delivery;

/* Makes a job from a delivery; body is given away, also on failure. */
int cwist_jq__job_new(cwist_jq__job **job, cwist_jq__queue *queue,
                      const cwist_jq__delivery *delivery) CWIST_JQ_MUST_USE;

/* ---- claims (claim.c) ---- */

/* A claim under way. One thread at a time. */
typedef struct cwist_jq__claim {
    cwist_jq__object object;
    cwist_jq__queue *queue; /* counted */
    size_t most;            /* jobs that it may bring, 1 to CWIST_JOB_BATCH_MAX */
    uint64_t deadline;
    unsigned interrupts; /* the queue's count when the claim began */
    bool ended;          /* an error was reported */
    void *impl;          /* the backend's own part */
    /* what came, `count` of it at present; they are the caller's from the end of a wait on */
    size_t count;
    cwist_jq__job *jobs[]; /* `most` places */
} cwist_jq__claim;

/*
 * CWIST_SUCCESS while the claim may go on, else CLOSED or INTERRUPTED. A backend that waits asks at
 * least every CWIST_JQ_SLICE_MS.
 */
int cwist_jq__claim_check(const cwist_jq__claim *claim);
#define CWIST_JQ_SLICE_MS 100

/* Sleeps until `until` in slices; ends early with the result of cwist_jq__claim_check(). */
int cwist_jq__claim_pause(const cwist_jq__claim *claim, uint64_t until);

/*
 * Hands back jobs that the library itself cannot deliver (rule 14 of docs/states.md): releases
 * them, logs those for which that fails, frees them.
 */
void cwist_jq__hand_back(cwist_jq__queue *queue, cwist_jq__job **jobs, size_t count);

#endif
