/*
 * Keeps leases. One thread for the whole process extends them: each when a third of it is spent, so
 * that there is time for several tries, and with it those of the same queue that are due soon. The
 * thread starts with the first job and ends some time after the last.
 *
 * It gives a server PATIENCE_MS for an answer. A connection whose server takes longer gets a lane,
 * a thread of its own, until the server is quick again or no job is left: so a slow or dead server
 * costs the leases at another one little time, and once only.
 *
 * One lock guards all of it, and nobody holds it during a call of a server. Each job in a list is
 * counted. A forked child begins with no thread and empty lists.
 */
#include "core/renewals.h"

#include "core/backend.h"
#include "core/settle.h"
#include "platform/clock.h"
#include "platform/condition.h"
#include "platform/detached.h"

#define PATIENCE_MS 100
#define IDLE_MS 5000 /* the thread waits so long for further jobs */
#define QUIET_MS 200 /* an ending waits so long for an extension of its job */
#define EXIT_MS 500  /* the end of the program waits so long for the threads */
#define CALL_LEAST_MS 20
#define RETRY_MOST_MS 1000

/* What one thread looks after. */
typedef struct cwist_jq__lane {
    cwist_jq__conn *conn; /* NULL: the connections without a lane of their own */
    uint64_t wakes;       /* when it looks up again; 0: it is at work */
} lane;

static struct {
    cwist_jq__mutex lock;
    cwist_jq__condition changed; /* wakes lanes, and those who wait for an end */
    bool ready;                  /* `changed` is made */
    bool ends;                   /* the program ends */
    unsigned threads;
    bool has_home;          /* the thread of the process runs */
    lane home;              /* what it looks after */
    cwist_jq__queue *first; /* the queues that have jobs here */
} all = {.lock = CWIST_JQ_MUTEX_INIT};

static _Atomic uint64_t all_owner;

/* Only the parent has the threads, and perhaps one of them the lock. */
static void start_anew(void)
{
    cwist_jq__mutex_init(&all.lock);
    all.ready = all.ends = all.has_home = false;
    all.threads = 0;
    all.home = (lane){0};
    all.first = NULL;
}

static void enter(void)
{
    cwist_jq__enter_process(&all_owner, start_anew);
    cwist_jq__lock(&all.lock);
    if (!all.ready) {
        cwist_jq__condition_init(&all.changed);
        all.ready = true;
    }
}

static void leave(void)
{
    cwist_jq__unlock(&all.lock);
}

/* ---- lists, under the lock ---- */

static void add_queue(cwist_jq__queue *queue)
{
    queue->kept.before = NULL;
    queue->kept.after = all.first;
    if (all.first != NULL) {
        all.first->kept.before = queue;
    }
    all.first = queue;
}

static void remove_queue(cwist_jq__queue *queue)
{
    if (queue->kept.before != NULL) {
        queue->kept.before->kept.after = queue->kept.after;
    } else {
        all.first = queue->kept.after;
    }
    if (queue->kept.after != NULL) {
        queue->kept.after->kept.before = queue->kept.before;
    }
}

/* Puts a job into the list behind `before`; NULL: at the beginning. */
static void insert(cwist_jq__job *job, cwist_jq__job *before)
{
    cwist_jq__kept_jobs *list = &job->queue->kept;
    cwist_jq__job *after = before != NULL ? before->kept.after : list->first;

    if (list->first == NULL) {
        add_queue(job->queue);
    }
    job->kept.before = before;
    job->kept.after = after;
    *(before != NULL ? &before->kept.after : &list->first) = job;
    *(after != NULL ? &after->kept.before : &list->last) = job;
}

static void take_out(cwist_jq__job *job)
{
    cwist_jq__kept_jobs *list = &job->queue->kept;
    cwist_jq__job *before = job->kept.before;
    cwist_jq__job *after = job->kept.after;

    *(before != NULL ? &before->kept.after : &list->first) = after;
    *(after != NULL ? &after->kept.before : &list->last) = before;
    if (list->first == NULL) {
        remove_queue(job->queue);
    }
}

/* In the order of `due`. A lease that was just made longest is due last, or nearly. */
static void insert_late(cwist_jq__job *job, uint64_t due)
{
    cwist_jq__job *before = job->queue->kept.last;

    while (before != NULL && before->kept.due > due) {
        before = before->kept.before;
    }
    job->kept.due = due;
    insert(job, before);
}

/* The same for one that is due again very soon. */
static void insert_soon(cwist_jq__job *job, uint64_t due)
{
    cwist_jq__job *before = NULL;
    cwist_jq__job *after = job->queue->kept.first;

    while (after != NULL && after->kept.due <= due) {
        before = after;
        after = after->kept.after;
    }
    job->kept.due = due;
    insert(job, before);
}

static uint64_t due_of(cwist_jq__job *job)
{
    uint64_t spent_ns = cwist_jq__lease_ms(job->queue) * CWIST_JQ_MS / 3;

    return atomic_load(&job->lease_starts) + spent_ns;
}

/* ---- one extension of many leases ---- */

typedef struct batch {
    cwist_jq__queue *queue;
    size_t count;
    cwist_jq__job *jobs[CWIST_JQ_PIECE]; /* counted */
    int codes[CWIST_JQ_PIECE];
    bool lost[CWIST_JQ_PIECE]; /* taken out of the list because the lease is over */
} batch;

/* Chooses the jobs of a queue that are due now or soon. */
static void gather(batch *now, cwist_jq__queue *queue)
{
    uint64_t soon = cwist_jq__after_ms(cwist_jq__lease_ms(queue) / 12);
    cwist_jq__job *job = queue->kept.first;

    cwist_jq__ref(queue);
    now->queue = queue;
    for (now->count = 0; job != NULL && now->count < CWIST_JQ_PIECE && job->kept.due <= soon;
         job = job->kept.after) {
        cwist_jq__ref(job);
        job->kept.under_way = true;
        now->jobs[now->count++] = job;
    }
}

static uint64_t retry_at(const cwist_jq__queue *queue)
{
    uint64_t wait_ms = cwist_jq__lease_ms(queue) / 12;

    return cwist_jq__after_ms(wait_ms < RETRY_MOST_MS ? wait_ms : RETRY_MOST_MS);
}

/* Puts the jobs back into the list. Not those that were settled meanwhile, nor those lost. */
static void sort_in(batch *done)
{
    uint64_t again = retry_at(done->queue);

    for (size_t i = 0; i < done->count; i++) {
        cwist_jq__job *job = done->jobs[i];
        bool over = done->codes[i] == CWIST_ERROR_LEASE_LOST ||
                    cwist_jq__passed(atomic_load(&job->lease_ends));

        job->kept.under_way = false;
        done->lost[i] = false;
        if (!atomic_load(&job->is_kept)) {
            continue;
        }
        take_out(job);
        if (done->codes[i] == CWIST_SUCCESS) {
            insert_late(job, due_of(job));
        } else if (!over) {
            insert_soon(job, again);
        } else {
            atomic_store(&job->lost, true);
            atomic_store(&job->is_kept, false);
            done->lost[i] = true;
        }
    }
}

/* Tells of the leases that are lost, and gives the jobs back. Without the lock. */
static void finish(batch *done, const char *text)
{
    const cwist_jq__job *first = NULL;
    size_t others = 0;

    for (size_t i = 0; i < done->count; i++) {
        others += done->lost[i] && first != NULL ? 1 : 0;
        first = done->lost[i] && first == NULL ? done->jobs[i] : first;
    }
    if (first != NULL && others == 0) {
        cwist_jq__log(done->queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: the lease of job %s could not be renewed and is lost: %s",
                      done->queue->name, first->id, text);
    } else if (first != NULL) {
        cwist_jq__log(done->queue->conn, CWIST_JOB_LOG_WARNING,
                      "queue %s: the leases of job %s and %zu others could not be renewed and are "
                      "lost: %s",
                      done->queue->name, first->id, others, text);
    }
    for (size_t i = 0; i < done->count; i++) {
        if (done->lost[i]) {
            cwist_jq__unref(done->jobs[i]);
        }
        cwist_jq__unref(done->jobs[i]);
    }
    cwist_jq__unref(done->queue);
}

/*
 * How long a call may take: time for other tries must be left. A server that is known to be slow
 * has most of what is left of the lease, since connecting anew takes it several answers.
 */
static uint64_t call_ms(const lane *own, const cwist_jq__queue *queue)
{
    uint64_t most = queue->conn->operation_timeout_ms;
    uint64_t ms = cwist_jq__lease_ms(queue) / 6;

    if (own->conn == NULL) {
        most = most < PATIENCE_MS ? most : PATIENCE_MS;
    } else {
        ms = cwist_jq__ms_left(atomic_load(&queue->kept.first->lease_ends)) * 3 / 4;
    }
    ms = ms > CALL_LEAST_MS ? ms : CALL_LEAST_MS;
    return ms < most ? ms : most;
}

static void give_lane(cwist_jq__conn *conn);

/* Extends what is due in a queue. Holds the lock before and after. True: the server was quick. */
static bool extend(const lane *own, cwist_jq__queue *queue)
{
    batch now;
    uint64_t began = cwist_jq__now();
    uint64_t deadline = cwist_jq__add_ms(began, call_ms(own, queue));

    gather(&now, queue);
    leave();
    int status = queue->conn->ops->extend(queue, now.jobs, now.count, deadline, now.codes);
    bool quick = status != CWIST_ERROR_IO && status != CWIST_ERROR_OUTCOME_UNKNOWN &&
                 !cwist_jq__passed(cwist_jq__add_ms(began, PATIENCE_MS));
    enter();
    sort_in(&now);
    if (own->conn == NULL && !quick) {
        give_lane(queue->conn);
    }
    cwist_jq__condition_wake_all(&all.changed);
    leave();
    finish(&now, cwist_jq__error_text());
    enter();
    return quick;
}

/* ---- threads, under the lock except in the calls of servers ---- */

static bool is_in(const lane *own, const cwist_jq__queue *queue)
{
    return own->conn == NULL ? queue->conn->lane == NULL : queue->conn == own->conn;
}

static cwist_jq__queue *most_urgent(const lane *own)
{
    cwist_jq__queue *found = NULL;

    for (cwist_jq__queue *queue = all.first; queue != NULL; queue = queue->kept.after) {
        if (is_in(own, queue) &&
            (found == NULL || queue->kept.first->kept.due < found->kept.first->kept.due)) {
            found = queue;
        }
    }
    return found;
}

static void wait_until(lane *own, uint64_t when)
{
    own->wakes = when;
    cwist_jq__condition_wait(&all.changed, &all.lock, when);
    own->wakes = 0;
}

static bool start(void (*run)(void *argument), lane *own)
{
    bool started = !all.ends && cwist_jq__start_detached(run, own);

    all.threads += started ? 1 : 0;
    return started;
}

static void stop(void)
{
    all.threads--;
    cwist_jq__condition_wake_all(&all.changed);
}

/* Does what is due, or waits until something is. True: the server, if one was asked, was quick. */
static bool step(lane *own, cwist_jq__queue *queue)
{
    uint64_t due = queue->kept.first->kept.due;

    if (cwist_jq__passed(due)) {
        return extend(own, queue);
    }
    wait_until(own, due);
    return true;
}

/* The thread of the process. */
static void run_home(void *argument)
{
    lane *own = argument;
    uint64_t idle_ends = 0;

    enter();
    while (!all.ends && (all.first != NULL || !cwist_jq__passed(idle_ends))) {
        cwist_jq__queue *queue = most_urgent(own);
        if (all.first != NULL) {
            idle_ends = cwist_jq__after_ms(IDLE_MS);
        }
        if (queue != NULL) {
            (void)step(own, queue);
        } else {
            wait_until(own, all.first != NULL ? CWIST_JQ_NEVER : idle_ends);
        }
    }
    all.has_home = false;
    stop();
    leave();
}

/* The thread of a connection whose server is slow. */
static void run_lane(void *argument)
{
    lane *own = argument;
    cwist_jq__queue *queue = NULL;
    bool done = false;

    enter();
    while (!done && !all.ends && (queue = most_urgent(own)) != NULL) {
        bool asks = cwist_jq__passed(queue->kept.first->kept.due);
        done = step(own, queue) && asks;
    }
    own->conn->lane = NULL;
    stop();
    leave();
    cwist_jq__unref(own->conn);
    cwist_jq__free(own);
}

/* When that fails the thread of the process goes on with the connection. */
static void give_lane(cwist_jq__conn *conn)
{
    lane *own = cwist_jq__calloc(1, sizeof *own);

    if (own == NULL) {
        return;
    }
    own->conn = conn;
    if (start(run_lane, own)) {
        cwist_jq__ref(conn);
        conn->lane = own;
    } else {
        cwist_jq__free(own);
    }
}

/* ---- the end of the program ---- */

/* What the threads call is torn down next, so none of them may be on its way into it. */
static void end_threads(void)
{
    uint64_t limit = cwist_jq__after_ms(EXIT_MS);

    enter();
    all.ends = true;
    cwist_jq__condition_wake_all(&all.changed);
    while (all.threads != 0 && !cwist_jq__passed(limit)) {
        cwist_jq__condition_wait(&all.changed, &all.lock, limit);
    }
    leave();
}

static bool have_home(void)
{
    static bool told; /* the program's end of us; a forked child has it from its parent */

    if (!all.has_home) {
        all.has_home = start(run_home, &all.home);
    }
    if (all.has_home && !told) {
        told = cwist_jq__at_exit(end_threads);
    }
    return all.has_home;
}

/* ---- for the rest of the core ---- */

/* Adds jobs that are not in the list yet; wakes the thread when it is to look up earlier. */
static void add(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count)
{
    const lane *own = queue->conn->lane != NULL ? queue->conn->lane : &all.home;

    for (size_t i = 0; i < count; i++) {
        if (!atomic_load(&jobs[i]->is_kept)) {
            cwist_jq__ref(jobs[i]);
            insert_late(jobs[i], due_of(jobs[i]));
            atomic_store(&jobs[i]->is_kept, true);
        }
    }
    if (queue->kept.first->kept.due < own->wakes) {
        cwist_jq__condition_wake_all(&all.changed);
    }
}

int cwist_jq__keep(cwist_jq__queue *queue, cwist_jq__job *const *jobs, size_t count)
{
    enter();
    bool can = have_home();
    if (can) {
        add(queue, jobs, count);
    }
    leave();
    for (size_t i = 0; i < count && can; i++) { /* settled meanwhile by another thread */
        if (atomic_load(&jobs[i]->over)) {
            cwist_jq__keep_no_more(jobs[i], false);
        }
    }
    if (can && atomic_load(&queue->closed)) {
        cwist_jq__keep_none(queue);
    }
    return can ? CWIST_SUCCESS
               : cwist_jq__fail(CWIST_ERROR_NOMEM, "no thread that renews leases can be started");
}

void cwist_jq__keep_no_more(cwist_jq__job *job, bool quiet)
{
    atomic_store(&job->over, true);
    if (!atomic_load(&job->is_kept)) {
        return;
    }
    uint64_t limit = cwist_jq__after_ms(quiet ? QUIET_MS : 0);
    enter();
    while (job->kept.under_way && !cwist_jq__passed(limit)) {
        cwist_jq__condition_wait(&all.changed, &all.lock, limit);
    }
    bool kept = atomic_load(&job->is_kept);
    if (kept) {
        take_out(job);
        atomic_store(&job->is_kept, false);
    }
    leave();
    if (kept) {
        cwist_jq__unref(job);
    }
}

void cwist_jq__keep_none(cwist_jq__queue *queue)
{
    cwist_jq__job *taken = NULL;

    enter();
    while (queue->kept.first != NULL) {
        cwist_jq__job *job = queue->kept.first;
        take_out(job);
        atomic_store(&job->is_kept, false);
        job->kept.after = taken;
        taken = job;
    }
    leave();
    while (taken != NULL) {
        cwist_jq__job *job = taken;
        taken = job->kept.after;
        cwist_jq__unref(job);
    }
}
