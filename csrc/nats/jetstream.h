/*
 * The NATS JetStream backend.
 *
 * libnats is used as a transport only: connect, publish, synchronous subscriptions. Its
 * reconnecting is off: a connection that broke is replaced by a new one (a new `link`), so nothing
 * is ever buffered and sent after a lease ended, and everybody knows what was lost with the old
 * one. Nothing here needs libnats' timer or callback threads, which do not exist in a forked child.
 */
#ifndef CWIST_JQ_NATS_JETSTREAM_H
#define CWIST_JQ_NATS_JETSTREAM_H

#include <nats/nats.h>

#include "core/backend.h"
#include "nats/json.h"
#include "platform/thread.h"

/* Internal results beside the public codes and CWIST_JQ_PENDING (the wait is over). */
enum {
    CWIST_JQ_NO_RESPONDERS = 2, /* the server has nobody for the subject: nothing was stored */
    CWIST_JQ_LOST = 3,          /* sent, and no reply will come */
    CWIST_JQ_UNSENT = 4,        /* the connection was gone before anything was sent */
    CWIST_JQ_TAKEN = 5,         /* refused: another message is on the subject */
    CWIST_JQ_NO_ROOM = 6        /* refused: the stream holds as many messages as it may */
};

/* How long a caller waits: until the deadline, or until its claim (may be NULL) must end. */
typedef struct cwist_jq__wait {
    uint64_t deadline;
    const cwist_jq__claim *claim;
} cwist_jq__wait;

/* SUCCESS while the wait may go on, PENDING at its deadline, or CLOSED, INTERRUPTED. */
int cwist_jq__wait_check(const cwist_jq__wait *wait);
/* The wait's end or `ms` from now, whichever is first; in whole milliseconds from now. */
int64_t cwist_jq__wait_slice(const cwist_jq__wait *wait, uint64_t ms);
/* Sleeps until the back-off's next moment; then as wait_check. */
int cwist_jq__wait_backoff(const cwist_jq__wait *wait, cwist_jq__backoff *backoff);

/* ---- links (link.c): one libnats connection each ---- */

typedef struct cwist_jq__watch cwist_jq__watch;

#define CWIST_JQ_INBOX_SIZE 64
#define CWIST_JQ_DIGITS 20        /* of the largest number */
#define CWIST_JQ_SUBJECT_SIZE 448 /* of subjects that hold no key */

/*
 * A subscription of one's own, for replies. Used by one thread at a time. It hears "<subject>.*",
 * so that the replies to several messages can be told apart.
 */
typedef struct cwist_jq__inbox {
    struct cwist_jq__inbox *next;
    natsSubscription *subscription;
    char subject[CWIST_JQ_INBOX_SIZE];
    char heard[CWIST_JQ_INBOX_SIZE + 2];
    char reply[CWIST_JQ_INBOX_SIZE + 2]; /* "<subject>.0", for one reply */
} cwist_jq__inbox;

typedef struct cwist_jq__link {
    atomic_uint references;
    atomic_bool broken;
    atomic_uint inbox_count;
    natsConnection *nc;
    cwist_jq__watch *watch; /* outlives the link: libnats calls back late */
    cwist_jq__mutex lock;   /* the list of free inboxes */
    cwist_jq__inbox *free_inboxes;
    char prefix[40]; /* of the inboxes */
    bool for_bursts; /* what is sent waits in a buffer for cwist_jq__link_flush() */
} cwist_jq__link;

/* Connects once. On failure the code, and *final when trying again is pointless. */
int cwist_jq__link_open(cwist_jq__link **link, natsOptions *options, bool for_bursts, bool *final);
void cwist_jq__link_ref(cwist_jq__link *link);
void cwist_jq__link_unref(cwist_jq__link *link); /* NULL is allowed */
bool cwist_jq__link_usable(cwist_jq__link *link);
/* Closes the connection, so that every user of it sees its end at once. */
void cwist_jq__link_break(cwist_jq__link *link);
/* Breaks the link unless anything comes from the server within half a second, or by the deadline.
 */
void cwist_jq__link_probe(cwist_jq__link *link, uint64_t deadline);
/* How many messages came over the link so far, for whomever. */
uint64_t cwist_jq__link_messages(cwist_jq__link *link);

/* Sends what waits in the buffer of a link for bursts. False: the link broke. */
bool cwist_jq__link_flush(cwist_jq__link *link);

/* A free inbox, or NULL: the link broke or there is no memory. */
cwist_jq__inbox *cwist_jq__inbox_take(cwist_jq__link *link);
/* `clean`: nothing can arrive on it any more, so another request may use it. */
void cwist_jq__inbox_give(cwist_jq__link *link, cwist_jq__inbox *inbox, bool clean);

/* How many permission violations the server has told so far. */
unsigned cwist_jq__violations(const cwist_jq__link *link);
/* DENIED with the server's words if one since `seen` names one of the subjects, else SUCCESS. */
int cwist_jq__violation(cwist_jq__link *link, unsigned seen, const char *subject,
                        const char *inbox);

/* ---- options (options.c) ---- */

/*
 * What libnats is told to connect with. It checks the name in a certificate against one name only,
 * so with TLS each server of the URL has a set of its own.
 */
typedef struct cwist_jq__options {
    natsOptions **sets;
    unsigned count;
    bool tls;
} cwist_jq__options;

/* On failure it is left cleared. */
int cwist_jq__options_new(cwist_jq__options *options, const cwist_jq__conn *conn, bool for_bursts);
void cwist_jq__options_clear(cwist_jq__options *options);

/* ---- connections (conn.c) ---- */

/*
 * Two connections at most. ALONE sends each message at once, which is quickest for one request and
 * its reply. TOGETHER keeps messages in a buffer until it is flushed, so a burst costs one write;
 * it is opened when the first batch needs it. One connection cannot do both.
 */
typedef enum cwist_jq__lane_name {
    CWIST_JQ_ALONE,
    CWIST_JQ_TOGETHER,
    CWIST_JQ_LANES
} cwist_jq__lane_name;

/* The link of a lane and the connecting of it. Under the lock of the connection. */
typedef struct cwist_jq__lane {
    struct cwist_jq__nats *nats;
    cwist_jq__options options; /* never changed */
    cwist_jq__link *link;      /* counted; NULL while there is none */
    bool connecting;
    unsigned waiters;
    cwist_jq__backoff backoff;
    uint64_t failures;
    bool final; /* the last failure will not go away by trying again */
    int code;   /* of the last failure, with its text */
    char text[512];
} cwist_jq__lane;

/* conn->impl. The connecting thread may outlive the connection, so this is counted apart. */
typedef struct cwist_jq__nats {
    atomic_uint references;
    uint64_t process;     /* libnats objects of another process must not be touched */
    cwist_jq__mutex lock; /* what follows */
    bool closed;
    cwist_jq__lane lanes[CWIST_JQ_LANES];
    _Atomic int64_t max_payload;
    _Atomic uint64_t round_trip_ms; /* as last seen */
    char version[32];               /* of the server, at open; "": not known */
    bool below_2_10;                /* set at open: the server needs care (sweep.c, pull.c) */
    unsigned minor;                 /* of the version 2.minor; 0: not known */
    atomic_bool jetstream_seen;     /* the API has answered once: then silence is a passing thing */
    _Atomic int64_t clock_ahead;    /* the server's clock less the local one, in milliseconds */
    _Atomic uint64_t clock_until;   /* when that is too old to be used; 0: not known */
} cwist_jq__nats;

/*
 * The present link of a lane, counted, connecting first when there is none. PENDING: the wait ended
 * before there was one; the text says why, and the caller turns it into IO.
 */
int cwist_jq__lane_get(cwist_jq__link **link, cwist_jq__nats *nats, cwist_jq__lane_name name,
                       const cwist_jq__wait *wait);
/* The same of the lane for single messages. */
int cwist_jq__link_get(cwist_jq__link **link, cwist_jq__nats *nats, const cwist_jq__wait *wait);

/* How long the server may be late with an answer that it should have given by now. */
uint64_t cwist_jq__late_ms(const cwist_jq__nats *nats);
/* How long looking for the streams and the consumer, and making them, may take. */
uint64_t cwist_jq__setup_ms(const cwist_jq__nats *nats);
/* The part of it that is for a server far away: 0 when it is near. */
uint64_t cwist_jq__setup_far_ms(const cwist_jq__nats *nats);

/* True in a child of the process that started libnats: its callback thread is not there. */
bool cwist_jq__libnats_is_inherited(void);

int cwist_jq__nats_open(cwist_jq__conn *conn, uint64_t deadline);
int cwist_jq__nats_ping(cwist_jq__conn *conn, uint64_t deadline);
void cwist_jq__nats_close(cwist_jq__conn *conn);

/*
 * Reads the greeting of the server at host:port, which carries its version. UNSUPPORTED when the
 * version is too old; a server that sends no greeting before TLS passes. Tells nats->version and
 * below_2_10.
 */
int cwist_jq__check_greeting(cwist_jq__nats *nats, const char *url, bool encrypted,
                             uint64_t deadline);

/* ---- one message and its reply (request.c) ---- */

typedef struct cwist_jq__header {
    const char *name;
    const char *value;
    char *owned; /* NULL, or the value when it was made for this list */
} cwist_jq__header;

typedef struct cwist_jq__request {
    const char *subject;
    const void *data;
    size_t len;
    const cwist_jq__header *headers; /* NULL: none */
    size_t header_count;
} cwist_jq__request;

/*
 * Sends once and waits for the reply; *reply is yours to destroy. Results: SUCCESS, NO_RESPONDERS,
 * LOST, UNSENT, DENIED, NOMEM, TOO_LARGE, and CLOSED or INTERRUPTED of the wait's claim (sent, and
 * no longer waited for).
 */
int cwist_jq__request_send(natsMsg **reply, cwist_jq__link *link, const cwist_jq__request *request,
                           const cwist_jq__wait *wait);

/*
 * Sends once, without waiting; reply_to may be NULL. SUCCESS, UNSENT, LOST (perhaps sent, and the
 * link is broken), NOMEM, TOO_LARGE.
 */
int cwist_jq__publish(cwist_jq__link *link, const cwist_jq__request *request, const char *reply_to);
/*
 * Waits for the next reply. Results as cwist_jq__request_send(), but *reply may be set with
 * NO_RESPONDERS too, and is NULL otherwise.
 */
int cwist_jq__await_reply(natsMsg **reply, cwist_jq__link *link, cwist_jq__inbox *inbox,
                          const char *subject, unsigned violations, const cwist_jq__wait *wait);

/* ---- many messages in one write (burst.c) ---- */

#define CWIST_JQ_BURST_MAX 256             /* messages */
#define CWIST_JQ_BURST_BYTES (1024 * 1024) /* of payloads, unless one alone is larger */
#define CWIST_JQ_NO_REPLY SIZE_MAX

typedef struct cwist_jq__burst {
    cwist_jq__link *link; /* counted */
    cwist_jq__inbox *inbox;
    size_t inbox_len;
    const char *subject; /* of the last message */
    unsigned violations;
    size_t open; /* replies still to come */
} cwist_jq__burst;

/* Results as lane_get, UNSENT, NOMEM; unless SUCCESS there is nothing to end. */
int cwist_jq__burst_begin(cwist_jq__burst *burst, cwist_jq__nats *nats, const cwist_jq__wait *wait);
/* Adds a message, its reply to be known by `slot` (CWIST_JQ_NO_REPLY: none). As publish(). */
int cwist_jq__burst_add(cwist_jq__burst *burst, const cwist_jq__request *request, size_t slot);
/* All of it leaves. False: the link broke. */
bool cwist_jq__burst_flush(cwist_jq__burst *burst);
/* The next reply and what it answers, as cwist_jq__await_reply(). */
int cwist_jq__burst_next(natsMsg **reply, size_t *slot, cwist_jq__burst *burst,
                         const cwist_jq__wait *wait);
void cwist_jq__burst_end(cwist_jq__burst *burst);

/* ---- the JetStream API (api.c) ---- */

/* A reply of the API. */
typedef struct cwist_jq__answer {
    natsMsg *message; /* NULL: none */
    cwist_jq__json json;
    int64_t error;  /* 0, or the server's err_code */
    int64_t http;   /* 0, or the server's code */
    char text[200]; /* the server's words, with the err_code */
} cwist_jq__answer;

/* Reads an answer out of a message, which it takes over. PROTOCOL when it is none. */
int cwist_jq__answer_read(cwist_jq__answer *answer, natsMsg *message);
void cwist_jq__answer_clear(cwist_jq__answer *answer);
/* True for errors that pass by themselves: no leader yet, starting up. */
bool cwist_jq__answer_is_temporary(const cwist_jq__answer *answer);
/* The public code of an error answer, with `what` and the server's words as text. */
int cwist_jq__answer_fail(const cwist_jq__answer *answer, const char *what);

/*
 * Asks until there is an answer that is not temporary: for requests that may be repeated. SUCCESS
 * with an answer, which may hold an error. At the wait's end: IO (or REFUSED, UNSUPPORTED with the
 * last temporary error).
 */
int cwist_jq__api(cwist_jq__answer *answer, cwist_jq__nats *nats, const char *subject,
                  const char *body, const cwist_jq__wait *wait);

#define CWIST_JQ_ERR_CONSUMER_NOT_FOUND 10014
#define CWIST_JQ_ERR_NO_MESSAGE 10037
#define CWIST_JQ_ERR_SEQUENCE_GONE 10043
#define CWIST_JQ_ERR_DELETE_FAILED 10057
#define CWIST_JQ_ERR_STREAM_EXISTS 10058
#define CWIST_JQ_ERR_STREAM_NOT_FOUND 10059
#define CWIST_JQ_ERR_SUBJECTS_OVERLAP 10065
#define CWIST_JQ_ERR_WRONG_LAST 10071
#define CWIST_JQ_ERR_STORE_FAILED 10077

/* True when the subject holds a message, though it was to hold none. */
bool cwist_jq__answer_is_taken(const cwist_jq__answer *answer);
/* True when the stream holds as many messages as it may. */
bool cwist_jq__answer_is_full(const cwist_jq__answer *answer);

/* ---- many questions at once (ask.c) ---- */

/* A question to the API that may be repeated, and its answer. Zero it before filling it in. */
typedef struct cwist_jq__ask {
    const char *subject;
    char *body;              /* owned; NULL: none */
    cwist_jq__answer answer; /* message NULL: none came */
    bool done;               /* with an answer, or there is nothing to ask */
    bool under_way;
    bool lost; /* sent once without an answer: it may have been done then */
} cwist_jq__ask;

/*
 * Asks up to CWIST_JQ_BURST_MAX questions in one burst, until all have answers that are not
 * temporary. SUCCESS, or the first failure; then some may have answers.
 */
int cwist_jq__ask_all(cwist_jq__nats *nats, cwist_jq__ask *asks, size_t count,
                      const cwist_jq__wait *wait);
void cwist_jq__ask_clear(cwist_jq__ask *asks, size_t count);

/* ---- queues ---- */

/* What a handle remembers of a stream. */
typedef struct cwist_jq__seen {
    atomic_bool before;       /* it was there once: if missing now, it was deleted */
    _Atomic uint64_t settled; /* missing: when it may be made again; 0: not missing */
} cwist_jq__seen;

/* queue->impl. */
typedef struct cwist_jq__nats_queue {
    char *stream;         /* "<q>"; "<q>_DEAD" is made of it */
    char *jobs;           /* "<q>.jobs" */
    char *next;           /* the subject of pulls */
    atomic_bool in_setup; /* one thread at a time looks after the streams and the consumer */
    bool swept;           /* of the thread in setup */
    atomic_bool stream_known;
    atomic_bool takes_atomic;    /* the stream was seen to allow batches of all or none */
    atomic_bool takes_schedules; /* and delayed jobs */
    _Atomic uint64_t limit_at;   /* when the limit is looked at again; 0: it was not yet */
    cwist_jq__seen jobs_seen;
    cwist_jq__seen dead_seen;
    atomic_bool consumer_known;
    atomic_bool visibility_set; /* this handle's claims have settled the visibility once */
    _Atomic uint64_t look_at;   /* when the consumer is looked at again */
    cwist_jq__mutex lock;       /* the list of pullers */
    struct cwist_jq__puller *free_pullers[CWIST_JQ_LANES];
} cwist_jq__nats_queue;

cwist_jq__nats *cwist_jq__nats_of(const cwist_jq__queue *queue);
cwist_jq__nats_queue *cwist_jq__nats_queue_of(const cwist_jq__queue *queue);

/* ---- times (moment.c) ---- */

#define CWIST_JQ_MOMENT_SIZE 32

/* "2026-11-29T19:54:11.672047443Z" in milliseconds since 1970; 0 when it cannot be read. */
uint64_t cwist_jq__moment_read(cwist_jq__json value);
/* The same the other way, into CWIST_JQ_MOMENT_SIZE bytes. */
void cwist_jq__moment_write(char *out, uint64_t ms);
/* Learns the server's clock from an answer, if that tells it, to a question of the moment `asked`.
 */
void cwist_jq__clock_note(cwist_jq__nats *nats, const cwist_jq__answer *answer, uint64_t asked);
bool cwist_jq__clock_known(cwist_jq__nats *nats);
/* Milliseconds since 1970 by the server's clock, which must be known. */
uint64_t cwist_jq__clock_ms(cwist_jq__nats *nats);

/* ---- dedupe keys (key.c) ---- */

/* The subject of the jobs with that key. Yours to free; NULL: no memory. */
char *cwist_jq__key_subject(const cwist_jq__queue *queue, const char *key);
/* What names the key in the subject of a job, or NULL: it has no key. */
const char *cwist_jq__key_token(const cwist_jq__queue *queue, const char *subject);
/* Reads the key into CWIST_JQ_KEY_MAX + 1 bytes; its length, 0 when it is none of ours. */
size_t cwist_jq__key_read(char *key, const char *token);

/* ---- settings of the job stream (settings.c) ---- */

/* True when the server is known to be older than 2.<minor>. */
bool cwist_jq__is_older(const cwist_jq__nats *nats, unsigned minor);

/* Whether the stream, by its info, has the subjects of delayed jobs. */
bool cwist_jq__has_waiting(const cwist_jq__answer *answer, const cwist_jq__queue *queue);
/* See to it that the stream is there and takes batches of all or none, or delayed jobs. */
int cwist_jq__ensure_atomic(cwist_jq__queue *queue, const cwist_jq__wait *wait);
int cwist_jq__ensure_schedules(cwist_jq__queue *queue, const cwist_jq__wait *wait);
/* And has the limit of the handle, if that has one; quick when it was seen lately. */
int cwist_jq__ensure_limit(cwist_jq__queue *queue, const cwist_jq__wait *wait);
/* Lifts the limit of the stream for a moment, so that copies find room, or puts it back. */
int cwist_jq__lift_limit(cwist_jq__queue *queue, bool lifted, const cwist_jq__wait *wait);

/* ---- streams and the consumer (stream.c, consumer.c, sweep.c) ---- */

/* Asks for the info of "<q><suffix>". The answer, an error or not, is the caller's to clear. */
int cwist_jq__stream_info(cwist_jq__answer *answer, cwist_jq__queue *queue, const char *suffix,
                          const char *body, const cwist_jq__wait *wait);

/* Asks the stream "<q><suffix>" for one message. The same of the answer. */
int cwist_jq__get_message(cwist_jq__answer *answer, cwist_jq__queue *queue, const char *suffix,
                          const char *body, const cwist_jq__wait *wait);
/* Makes the stream of the jobs or of the dead letters if missing; CONFLICT if it is another's. */
int cwist_jq__ensure_jobs(cwist_jq__queue *queue, const cwist_jq__wait *wait);
int cwist_jq__ensure_dead(cwist_jq__queue *queue, const cwist_jq__wait *wait);
/* LEASE_LOST when the stream of the jobs is gone. */
int cwist_jq__find_jobs(cwist_jq__queue *queue, const cwist_jq__wait *wait);
/* Streams, consumer and visibility, as a claim needs them; quick when they were seen lately. */
int cwist_jq__ensure_consumer(cwist_jq__queue *queue, const cwist_jq__wait *wait);
/* Learns what visibility other workers set since the last look, if that was not lately. */
void cwist_jq__learn_visibility(cwist_jq__queue *queue, const cwist_jq__wait *wait);
/* Makes the consumer if it is missing, and settles nothing. */
int cwist_jq__make_consumer(cwist_jq__queue *queue, const cwist_jq__wait *wait);
/* The consumer's info; an answer with an error means that there is none (stats.c). */
int cwist_jq__consumer_info(cwist_jq__answer *answer, cwist_jq__queue *queue,
                            const cwist_jq__wait *wait);
/* What was known of the server may be wrong: look before the next use. */
void cwist_jq__forget(cwist_jq__queue *queue);
/* Deletes what a server below 2.10 may keep of jobs up to its ack floor. Bounded. */
int cwist_jq__sweep(cwist_jq__queue *queue, int64_t floor, const cwist_jq__wait *wait);
/* Deletes one message of the stream "<q><suffix>"; one that is gone is fine. */
int cwist_jq__delete_message(cwist_jq__queue *queue, const char *suffix, uint64_t sequence,
                             const cwist_jq__wait *wait);
/* Says of the answer to such a question that there is no such message. */
bool cwist_jq__answer_is_gone(const cwist_jq__answer *answer);

/* ---- messages (message.c) ---- */

/* What a delivery tells of itself by its ack subject. */
typedef struct cwist_jq__ticket {
    uint64_t delivered;
    uint64_t sequence;
    uint64_t stored; /* nanoseconds since 1970, by the server's clock */
} cwist_jq__ticket;

bool cwist_jq__ticket_read(cwist_jq__ticket *ticket, const char *ack_subject);
/* How many messages the consumer had for later ones when it delivered this one. */
uint64_t cwist_jq__pending_after(const char *ack_subject);

/* The value of a header, or NULL. */
const char *cwist_jq__header_of(natsMsg *message, const char *name);
/* A decimal number without sign and without superfluous characters. */
bool cwist_jq__decimal(uint64_t *number, const char *text);
/* Writes a decimal number, at most CWIST_JQ_DIGITS characters and a NUL; the number of characters.
 */
size_t cwist_jq__put_number(char *out, uint64_t number);

/* Everything that a copy or a dead letter needs to know of a delivery. */
typedef struct cwist_jq__origin {
    cwist_jq__ticket ticket;
    uint64_t first; /* time of the first enqueue, milliseconds */
    uint64_t from;  /* sequence that this copy replaces; 0: it is no copy */
    uint64_t spent; /* deliveries before this message */
    uint64_t dead;  /* sequence of the dead letter that it was; 0: it was none */
    char sequence[24];
    const char *id;
    const char *type;
    size_t type_len;
    const char *malformed; /* NULL, or the broken rule */
} cwist_jq__origin;

void cwist_jq__origin_read(cwist_jq__origin *origin, natsMsg *message);

/* Deletes what the message replaces, an original or a dead letter, if it is still there
 * (original.c). */
int cwist_jq__delete_replaced(cwist_jq__queue *queue, const cwist_jq__origin *origin,
                              const cwist_jq__wait *wait);
/*
 * The headers of a stored message, as the API hands it out, on a message without anything else;
 * NULL when they cannot be read. Yours to destroy.
 */
natsMsg *cwist_jq__stored_headers(cwist_jq__json stored);
/* True when the stored message is the copy of that sequence. */
bool cwist_jq__is_copy_of(cwist_jq__json stored, uint64_t sequence);

/* A list of headers that grows. After a failed allocation it stays failed. */
typedef struct cwist_jq__headers {
    cwist_jq__header *list;
    size_t count;
    size_t cap;
    bool failed;
    cwist_jq__header few[1]; /* the list while it is short */
} cwist_jq__headers;

/* Names and values are borrowed until the list is cleared. */
void cwist_jq__headers_add(cwist_jq__headers *headers, const char *name, const char *value);
/* value is given away. */
void cwist_jq__headers_own(cwist_jq__headers *headers, const char *name, char *value);
/* The headers of a job that a move keeps: all but the server's and those that the move writes. */
void cwist_jq__headers_keep(cwist_jq__headers *headers, natsMsg *message, bool raw);
/* Takes all headers of that name off the list. */
void cwist_jq__headers_drop(cwist_jq__headers *headers, const char *name);
/* The header of a type; see docs/wire-format.md for the quoted form. */
void cwist_jq__headers_type(cwist_jq__headers *headers, const char *type);
size_t cwist_jq__headers_size(const cwist_jq__headers *headers);
void cwist_jq__headers_clear(cwist_jq__headers *headers);

/*
 * Makes a message like another one, with the headers of a stored block (base64, as the stream hands
 * it out). *out is yours to destroy.
 */
int cwist_jq__with_headers(natsMsg **out, const natsMsg *like, cwist_jq__json encoded);

/* Undoes base64 in place, with a NUL behind it; the number of bytes. */
size_t cwist_jq__decode_base64(char *text);

/*
 * libnats gives up on a header block with an empty value. Then the same message is made again from
 * what the stream holds. *message is replaced; on failure it stays.
 */
int cwist_jq__repair_headers(cwist_jq__queue *queue, const char *stream, uint64_t sequence,
                             natsMsg **message, const cwist_jq__wait *wait);

/* The headers of a job that are not ours or the server's (fields.c). */
typedef struct cwist_jq__fields {
    cwist_jq__field *list;
    size_t count;
    size_t cap;
    bool failed;  /* no memory */
    bool suspect; /* libnats may have misread them: see cwist_jq__repair_headers() */
    cwist_jq__field few[4];
} cwist_jq__fields;

/* The strings live as long as the message. Clear it in any case. */
void cwist_jq__fields_read(cwist_jq__fields *fields, natsMsg *message);
void cwist_jq__fields_clear(cwist_jq__fields *fields);

/* ---- publishing (publish.c) ---- */

/*
 * What is published: jobs without a key are sent once, all else until its subject is taken. Of a
 * job with a key, a copy with one and a requeued letter a taken subject is told as TAKEN, of the
 * others it means that an earlier try stored them.
 */
typedef enum cwist_jq__purpose {
    CWIST_JQ_FOR_JOB,
    CWIST_JQ_FOR_COPY,
    CWIST_JQ_FOR_DEAD,
    CWIST_JQ_FOR_REQUEUE
} cwist_jq__purpose;

/* A message to be stored, and its result. It must not be moved once it has headers. */
typedef struct cwist_jq__post {
    cwist_jq__request request;
    cwist_jq__headers headers;
    const _Atomic uint64_t *lease; /* NULL, or what must not be over when it is sent */
    size_t item;                   /* its place in the caller's batch */
    int code;                      /* PENDING: to be sent */
    bool under_way;                /* sent, and no reply yet */
    bool lost;                     /* sent once, and no reply came */
    bool keyed;                    /* its subject is made of a key */
    bool scheduled;                /* its subject is one of those that wait */
    uint64_t sequence;             /* of a stored job */
    char *subject;                 /* NULL, or a subject that was made for this message */
    const char *id;                /* NULL, or the id that the message carries */
} cwist_jq__post;

void cwist_jq__post_init(cwist_jq__post *post, size_t item);
/* Frees the headers and the subject. */
void cwist_jq__post_clear(cwist_jq__post *post);
/*
 * Stores up to CWIST_JQ_BURST_MAX messages in their order. Fills in the codes and notes the first
 * that is not SUCCESS: LEASE_LOST when the lease was over before anything was sent, NOT_SENT for
 * jobs that stand behind one whose outcome is unknown.
 */
void cwist_jq__store(cwist_jq__queue *queue, cwist_jq__post *posts, size_t count,
                     cwist_jq__purpose goal, const cwist_jq__wait *wait,
                     cwist_jq__failure *failure);
/* FULL, or another code for an answer that says why a job is not stored. */
int cwist_jq__not_stored(const cwist_jq__answer *answer);
/* The sequence that the stream's answer to a job names, or why it is not stored. */
int cwist_jq__confirmation(uint64_t *sequence, const cwist_jq__answer *answer,
                           const cwist_jq__queue *queue);

/* ---- enqueue (item.c, enqueue.c, atomic.c) ---- */

/* Makes the message of an item out of a post that was begun. NOMEM. */
int cwist_jq__item_fill(cwist_jq__post *post, const cwist_jq__queue *queue,
                        const cwist_job_item_t *item);
/* What an item takes of a burst. */
size_t cwist_jq__item_size(const cwist_job_item_t *item);
/* Asks, by the API subject `get`, for the job that holds the key of a subject. */
int cwist_jq__holder_ask(cwist_jq__ask *ask, const char *get, const char *subject);
/* Reads the id of the job that holds it; false when there is none. */
bool cwist_jq__holder_read(char *id, const cwist_jq__ask *ask);
/* Adds what delays the message until `due`, to become one of `target`. */
void cwist_jq__schedule(cwist_jq__headers *headers, uint64_t due, const char *target);
/* The subject on which a job waits that becomes one of `target`. NULL: no memory. */
char *cwist_jq__waiting_subject(const cwist_jq__queue *queue, const char *target, const char *id);

int cwist_jq__nats_check_size(cwist_jq__queue *queue, const cwist_job_item_t *item);
int cwist_jq__nats_enqueue(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                           bool all_or_none, uint64_t deadline, cwist_job_stored_t *stored);
/* All of the jobs or none, in one step of the server (2.12 and newer). */
int cwist_jq__nats_enqueue_all(cwist_jq__queue *queue, const cwist_job_item_t *items, size_t count,
                               const cwist_jq__wait *wait, cwist_job_stored_t *stored);

/* ---- pulls and claims (pull.c, claim.c) ---- */

/* An inbox for pulled messages and the pull that is under way on it. */
typedef struct cwist_jq__puller {
    struct cwist_jq__puller *next;
    cwist_jq__link *link; /* counted */
    cwist_jq__inbox *inbox;
    bool asked;          /* a pull is under way */
    bool draining;       /* the server was told that nobody listens any more */
    size_t wanted;       /* deliveries that the pull may still bring */
    natsMsg *early;      /* a delivery of an earlier pull, taken next; NULL: none */
    unsigned violations; /* as of the pull */
    uint64_t ends;       /* when the server ends the pull by itself */
    uint64_t empty;      /* what arrives now arrived after this moment */
    uint64_t listens;    /* given up: when we listen no more at all; 0: not given up */
    /* Where the server tells of this pull. It may say of an earlier one that it is complete. */
    char reply[CWIST_JQ_INBOX_SIZE + CWIST_JQ_DIGITS + 2];
    size_t reply_len; /* of what is the same in all of them */
    uint64_t pulls;   /* that were made */
} cwist_jq__puller;

/* A puller that is ready for a pull, on the present link of the lane. Results as lane_get. */
int cwist_jq__puller_take(cwist_jq__puller **puller, cwist_jq__queue *queue,
                          cwist_jq__lane_name lane, const cwist_jq__wait *wait);
/* Back to the queue's list, or away when it cannot be used again. NULL is allowed. */
void cwist_jq__puller_give(cwist_jq__queue *queue, cwist_jq__puller *puller);
void cwist_jq__puller_free(cwist_jq__puller *puller);
/* Asks for one message; the server waits for it until the deadline (0: it does not wait). */
int cwist_jq__pull(cwist_jq__queue *queue, cwist_jq__puller *puller, uint64_t deadline);
/* Asks for up to `most` messages that are there now. On a link for bursts it must be flushed. */
int cwist_jq__poll(cwist_jq__queue *queue, cwist_jq__puller *puller, size_t most);
/* A job, and not a status message of the server. */
bool cwist_jq__is_delivery(natsMsg *message);
/* Waits at most ms. PENDING: nothing yet; NO_RESPONDERS, LOST. A delivery is counted off. */
int cwist_jq__pull_next(natsMsg **message, cwist_jq__queue *queue, cwist_jq__puller *puller,
                        uint64_t ms);
/*
 * Gives the pull up: each call brings one of the deliveries that were on their way, NULL ends it.
 * The puller may then be given back or freed.
 */
natsMsg *cwist_jq__pull_cancel(const cwist_jq__queue *queue, cwist_jq__puller *puller);

int cwist_jq__nats_claim_start(cwist_jq__claim *claim);
int cwist_jq__nats_claim_wait(cwist_jq__claim *claim, uint64_t until, cwist_jq__job **jobs,
                              size_t *count);
int cwist_jq__nats_ack_and_poll(cwist_jq__claim *claim, cwist_jq__job *const *jobs, size_t count,
                                int *codes, uint64_t deadline, cwist_jq__job **next, size_t *got);
void cwist_jq__nats_claim_end(cwist_jq__claim *claim);

/* ---- the ends of a delivery (settle.c, move.c) ---- */

/* Ends the leases of held jobs earlier when the visibility was made shorter meanwhile. */
void cwist_jq__lease_review(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                            const cwist_jq__wait *wait);

/* Acknowledgements with one word, for up to CWIST_JQ_BURST_MAX deliveries at a time. */
typedef struct cwist_jq__ending {
    cwist_jq__queue *queue;
    cwist_jq__job *const *jobs;
    size_t count;
    int *codes;
    cwist_jq__failure *failure; /* the first code that is not SUCCESS */
    size_t first;               /* the place of jobs[0] in the caller's batch */
    const char *word;
    size_t word_len;
    const uint64_t *delays_ms; /* NULL, or the delay of each job, told behind the word */
    bool fenced;               /* leases count */
    bool repeat;               /* what got no answer may be sent again */
    bool sent;                 /* once, without an answer */
    uint64_t sent_at;          /* the moment before the last sending */
    cwist_jq__puller *puller;  /* NULL, or what asks for `most` deliveries in the same burst */
    size_t most;
} cwist_jq__ending;

/*
 * Sends acknowledgements and waits until the server has them. Each of codes is filled in. SUCCESS:
 * the server has it. LEASE_LOST: the lease is over and nothing was sent. OUTCOME_UNKNOWN: sent
 * without an answer. IO: the deadline came and nothing was sent.
 */
void cwist_jq__confirm(cwist_jq__ending *ending, const cwist_jq__wait *wait);

int cwist_jq__nats_ack(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                       uint64_t deadline, int *codes);
/* The same, and a poll for `most` deliveries goes along, if the server can be reached at once. */
void cwist_jq__nats_ack_with_pull(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                                  cwist_jq__puller *puller, size_t most, uint64_t deadline,
                                  int *codes);
int cwist_jq__nats_retry(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                         const uint64_t *delays_ms, uint64_t deadline, int *codes);
int cwist_jq__nats_release(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                           uint64_t delay_ms, uint64_t deadline, int *codes);
int cwist_jq__nats_bury(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                        cwist_jq__cause cause, const char *text, uint64_t deadline, int *codes);
int cwist_jq__nats_extend(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count,
                          uint64_t deadline, int *codes);

/* ---- dead letters (letter.c, letters.c, find.c, requeue.c) ---- */

/* What is known of a letter beside its message. */
typedef struct cwist_jq__found {
    uint64_t sequence;
    uint64_t died_ms;
    size_t len;          /* of the payload */
    const void *payload; /* NULL: not asked for */
} cwist_jq__found;

/* Adds the letter that the message is to a page. The message needs no payload. */
int cwist_jq__letter_add(cwist_job_dead_page_t *page, const cwist_jq__queue *queue,
                         natsMsg *message, const cwist_jq__fields *fields,
                         const cwist_jq__found *found);
int cwist_jq__nats_dead_list(cwist_jq__queue *queue, const char *after, size_t most,
                             bool oldest_first, uint64_t deadline, cwist_job_dead_page_t *page,
                             bool *more);
int cwist_jq__nats_dead_find(cwist_jq__queue *queue, const char *id, bool payload,
                             uint64_t deadline, cwist_job_dead_page_t *page);
int cwist_jq__nats_dead_requeue(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                                size_t count, uint64_t deadline, int *codes);
int cwist_jq__nats_dead_remove(cwist_jq__queue *queue, const cwist_jq__letter *const *letters,
                               size_t count, uint64_t deadline, int *codes);

/* ---- statistics, purge, pause (backend.c, stats.c, purge.c, pause.c) ---- */

int cwist_jq__nats_dead_count(cwist_jq__queue *queue, uint64_t deadline, uint64_t *count);
int cwist_jq__nats_server_time(cwist_jq__queue *queue, uint64_t deadline, uint64_t *now_ms);
int cwist_jq__nats_stats(cwist_jq__queue *queue, uint64_t deadline, cwist_job_stats_t *stats);
int cwist_jq__nats_purge(cwist_jq__queue *queue, uint64_t deadline, uint64_t *mark, uint64_t *count,
                         bool *more);
int cwist_jq__nats_pause(cwist_jq__queue *queue, bool paused, uint64_t deadline);

/* The moment at which a lease that began at `start` is over for us: before it is for the server. */
uint64_t cwist_jq__lease_end(const cwist_jq__queue *queue, uint64_t start);

#endif
