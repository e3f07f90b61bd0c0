/*
 * Recovery. The tick is a script that makes due and lapsed jobs ready again, a bounded piece at a
 * time (lua/tick-4.lua). There is no leader: it rides along with claims and enqueues when none was
 * sent for a while, and a blocked claim sends it on a link beside the blocked one.
 *
 * The timetable belongs to the queue handle, whose threads share it. A blocked claim ticks when the
 * last tick said that a job will be due, else every 150 ms, so that what others delay meanwhile is
 * not late; and at most 8 times a second on average, so that an idle worker stays quiet.
 */
#include <string.h>

#include "redis/redis.h"
#include "redis_scripts.gen.h"

#define IDLE_GAP_MS 150
#define LEAST_GAP_MS 20
#define AVERAGE_GAP_MS 125
#define REAP_EVERY_MS 60000
#define REAP_AT_ONCE 100

void cwist_jq__redis_tick_build(cwist_jq__redis_request *request, cwist_jq__queue *queue,
                                bool claimer, bool settle)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    char cursor[CWIST_JQ_REDIS_CURSOR_SIZE];

    cwist_jq__lock(&own->lock);
    memcpy(cursor, own->cursor, sizeof cursor);
    bool whole = own->tick_whole;
    cwist_jq__unlock(&own->lock);

    cwist_jq__request_script(request, &cwist_jq__redis_script_tick, whole, 4);
    cwist_jq__request_text(request, own->keys.stream);
    cwist_jq__request_text(request, own->keys.delay);
    cwist_jq__request_text(request, own->keys.wait);
    cwist_jq__request_text(request, own->keys.conf);
    cwist_jq__request_text(request, own->keys.dedupe);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_number(request, claimer ? queue->visibility_ms : 0);
    cwist_jq__request_text(request, settle ? "1" : "0");
    cwist_jq__request_text(request, cursor);
}

static bool well_formed(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 7) {
        return false;
    }
    for (size_t i = 0; i < 7; i++) {
        if (i == 2 ? !cwist_jq__redis_is_text(reply->element[i])
                   : !cwist_jq__redis_is_number(reply->element[i])) {
            return false;
        }
    }
    return reply->element[2]->len < CWIST_JQ_REDIS_CURSOR_SIZE;
}

int cwist_jq__redis_tick_read(cwist_jq__queue *queue, const redisReply *reply,
                              cwist_jq__redis_ticked *ticked)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    cwist_jq__redis_fault fault = cwist_jq__redis_fault_of(reply);

    memset(ticked, 0, sizeof *ticked);
    if (fault != CWIST_JQ_FAULT_NONE) {
        cwist_jq__lock(&own->lock);
        own->tick_whole = fault == CWIST_JQ_FAULT_NO_SCRIPT;
        cwist_jq__unlock(&own->lock);
        return cwist_jq__redis_fault_fail(fault, "EVALSHA (tick)", reply);
    }
    if (!well_formed(reply)) {
        return cwist_jq__redis_odd_reply("EVALSHA (tick)");
    }
    long long hint = reply->element[1]->integer;
    long long visibility = reply->element[3]->integer;
    long long before = reply->element[4]->integer;
    ticked->more = reply->element[0]->integer != 0;
    atomic_store_explicit(&own->paused, reply->element[6]->integer != 0, memory_order_relaxed);
    ticked->visibility_before = before > 0 ? (uint64_t)before : 0;
    if (visibility > 0) {
        atomic_store(&queue->server_visibility_ms, (uint64_t)visibility);
    }
    cwist_jq__lock(&own->lock);
    own->tick_whole = false;
    own->hint = ticked->more ? cwist_jq__now()
                : hint < 0   ? CWIST_JQ_NEVER
                             : cwist_jq__after_ms((uint64_t)hint + 1);
    memcpy(own->cursor, reply->element[2]->str, reply->element[2]->len + 1);
    cwist_jq__unlock(&own->lock);
    return CWIST_SUCCESS;
}

/* ---- the timetable; the lock is held ---- */

static void begun(cwist_jq__redis_queue *own, uint64_t now)
{
    uint64_t credit = own->tick_credit > now ? own->tick_credit : now;

    own->last_tick = now;
    own->hint = CWIST_JQ_NEVER;
    own->tick_credit = cwist_jq__earlier(cwist_jq__add_ms(credit, AVERAGE_GAP_MS),
                                         cwist_jq__add_ms(now, UINT64_C(2) * AVERAGE_GAP_MS));
}

static uint64_t next_time(const cwist_jq__redis_queue *own)
{
    uint64_t when = cwist_jq__earlier(cwist_jq__add_ms(own->last_tick, IDLE_GAP_MS), own->hint);
    uint64_t least = cwist_jq__add_ms(own->last_tick, LEAST_GAP_MS);
    uint64_t allowed = own->tick_credit > AVERAGE_GAP_MS * CWIST_JQ_MS
                           ? own->tick_credit - AVERAGE_GAP_MS * CWIST_JQ_MS
                           : 0;
    when = when > least ? when : least;
    return when > allowed ? when : allowed;
}

/* ---- the timetable, for all ---- */

bool cwist_jq__redis_tick_due(cwist_jq__queue *queue, uint64_t gap_ms)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    uint64_t now = cwist_jq__now();

    cwist_jq__lock(&own->lock);
    bool due = own->last_tick == 0 || now >= cwist_jq__add_ms(own->last_tick, gap_ms) ||
               (now >= own->hint && now >= cwist_jq__add_ms(own->last_tick, LEAST_GAP_MS));
    if (due) {
        begun(own, now);
    }
    cwist_jq__unlock(&own->lock);
    return due;
}

void cwist_jq__redis_tick_begun(cwist_jq__queue *queue)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);

    cwist_jq__lock(&own->lock);
    begun(own, cwist_jq__now());
    cwist_jq__unlock(&own->lock);
}

uint64_t cwist_jq__redis_tick_time(cwist_jq__queue *queue)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);

    cwist_jq__lock(&own->lock);
    uint64_t when = next_time(own);
    cwist_jq__unlock(&own->lock);
    return when;
}

bool cwist_jq__redis_tick_now(cwist_jq__queue *queue)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    uint64_t now = cwist_jq__now();

    cwist_jq__lock(&own->lock);
    bool due = now >= next_time(own);
    if (due) {
        begun(own, now);
    }
    cwist_jq__unlock(&own->lock);
    return due;
}

/* ---- consumers that were left behind ---- */

bool cwist_jq__redis_reap_due(cwist_jq__queue *queue)
{
    cwist_jq__redis_queue *own = cwist_jq__redis_of(queue);
    uint64_t now = cwist_jq__now();

    cwist_jq__lock(&own->lock);
    bool due = own->next_reap != 0 && now >= own->next_reap;
    if (due || own->next_reap == 0) {
        /* The first time at a random moment, so that many workers do not look at once. */
        uint64_t wait = due ? REAP_EVERY_MS : 1000 + cwist_jq__random() % REAP_EVERY_MS;
        own->next_reap = cwist_jq__add_ms(now, wait);
    }
    cwist_jq__unlock(&own->lock);
    return due;
}

void cwist_jq__redis_reap_build(cwist_jq__redis_request *request, const cwist_jq__queue *queue)
{
    uint64_t visibility = atomic_load(&queue->server_visibility_ms);
    uint64_t silence = visibility * 2 > REAP_EVERY_MS ? visibility * 2 : REAP_EVERY_MS;

    cwist_jq__request_script(request, &cwist_jq__redis_script_reap, true, 3);
    cwist_jq__request_text(request, cwist_jq__redis_of(queue)->keys.stream);
    cwist_jq__request_text(request, CWIST_JQ_GROUP);
    cwist_jq__request_number(request, silence);
    cwist_jq__request_number(request, REAP_AT_ONCE);
}
