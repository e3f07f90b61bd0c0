/*
 * The replies of one exchange. They are small and many, so they stand in a few blocks that go
 * together, not in an object each. A long string has a block of its own, which a job may keep as
 * its payload instead of copying it.
 */
#include <string.h>

#include "redis/redis.h"

#define FIRST_BLOCK 960
#define BLOCK_MAX ((size_t)256 * 1024)
#define LONG_FROM 2048 /* bytes of a string that has a block of its own */

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

struct cwist_jq__redis_block {
    cwist_jq__redis_block *next;
    cwist_jq__redis_block **self; /* what points to it; a long string's only */
    long long data[];
};

/* ---- memory ---- */

static void *add_block(cwist_jq__redis_replies *replies, size_t size)
{
    cwist_jq__redis_block *block =
        size <= SIZE_MAX - sizeof *block ? cwist_jq__alloc(sizeof *block + size) : NULL;
    if (block == NULL) {
        return NULL;
    }
    block->self = NULL;
    block->next = replies->blocks;
    replies->blocks = block;
    return block->data;
}

static void *take(cwist_jq__redis_replies *replies, size_t size)
{
    const size_t step = sizeof(long long);

    if (size > SIZE_MAX - step) {
        return NULL;
    }
    size = (size + step - 1) / step * step;
    if (size > replies->left) {
        size_t next = replies->next_block == 0 ? FIRST_BLOCK : replies->next_block;
        size_t room = size > next ? size : next;
        char *data = add_block(replies, room);
        if (data == NULL) {
            return NULL;
        }
        replies->next_block = next * 4 < BLOCK_MAX ? next * 4 : BLOCK_MAX;
        replies->free = data;
        replies->left = room;
    }
    char *at = replies->free;
    replies->free += size;
    replies->left -= size;
    return at;
}

static char *take_long(cwist_jq__redis_replies *replies, size_t size)
{
    cwist_jq__redis_block *block =
        size <= SIZE_MAX - sizeof *block ? cwist_jq__alloc(sizeof *block + size) : NULL;
    if (block == NULL) {
        return NULL;
    }
    block->next = replies->longs;
    block->self = &replies->longs;
    if (block->next != NULL) {
        block->next->self = &block->next;
    }
    replies->longs = block;
    return (char *)block->data;
}

static void free_blocks(cwist_jq__redis_block *block)
{
    while (block != NULL) {
        cwist_jq__redis_block *next = block->next;
        cwist_jq__free(block);
        block = next;
    }
}

void cwist_jq__replies_clear(cwist_jq__redis_replies *replies)
{
    if (replies->blocks != NULL) {
        free_blocks(replies->blocks);
        free_blocks(replies->longs);
        memset(replies, 0, sizeof *replies);
    }
}

bool cwist_jq__replies_begin(cwist_jq__redis_replies *replies, unsigned commands)
{
    cwist_jq__replies_clear(replies);
    replies->at = take(replies, commands * sizeof(redisReply *));
    return replies->at != NULL;
}

void *cwist_jq__replies_keep(const redisReply *reply)
{
    if (reply->len < LONG_FROM) {
        return NULL;
    }
    cwist_jq__redis_block *block =
        (cwist_jq__redis_block *)(void *)(reply->str - offsetof(cwist_jq__redis_block, data));
    *block->self = block->next;
    if (block->next != NULL) {
        block->next->self = block->self;
    }
    return block;
}

/* ---- what the reader of hiredis calls ---- */

static redisReply *add_reply(const redisReadTask *task)
{
    redisReply *reply = take(task->privdata, sizeof *reply);

    if (reply == NULL) {
        return NULL;
    }
    memset(reply, 0, sizeof *reply);
    reply->type = task->type;
    if (task->parent != NULL) {
        redisReply *parent = task->parent->obj;
        parent->element[task->idx] = reply;
    }
    return reply;
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    cwist_jq__redis_replies *replies = task->privdata;
    redisReply *reply = add_reply(task);

    if (reply == NULL) {
        return NULL;
    }
    reply->str = len < LONG_FROM ? take(replies, len + 1) : take_long(replies, len + 1);
    if (reply->str == NULL) {
        return NULL;
    }
    memcpy(reply->str, text, len);
    reply->str[len] = '\0';
    reply->len = len;
    return reply;
}

static void *create_array(const redisReadTask *task, array_size elements)
{
    redisReply *reply = add_reply(task);
    size_t count = (size_t)elements;

    if (reply == NULL || count > SIZE_MAX / sizeof(redisReply *)) {
        return NULL;
    }
    reply->elements = count;
    reply->element = take(task->privdata, count * sizeof(redisReply *));
    return reply->element != NULL ? reply : NULL;
}

static void *create_integer(const redisReadTask *task, long long number)
{
    redisReply *reply = add_reply(task);

    if (reply != NULL) {
        reply->integer = number;
    }
    return reply;
}

static void *create_nil(const redisReadTask *task)
{
    redisReply *reply = add_reply(task);

    if (reply != NULL) {
        reply->type = REDIS_REPLY_NIL; /* the task says only what kind of nil it was */
    }
    return reply;
}

#if HIREDIS_MAJOR >= 1
/* No server sends these unless it is asked to speak version 3 of the protocol. */
static void *create_double(const redisReadTask *task, double number, char *text, size_t len)
{
    (void)number;
    return create_string(task, text, len);
}

static void *create_bool(const redisReadTask *task, int truth)
{
    return create_integer(task, truth);
}
#endif

static void free_nothing(void *reply)
{
    (void)reply; /* it goes with its block */
}

static redisReplyObjectFunctions functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
#if HIREDIS_MAJOR >= 1
    .createDouble = create_double,
    .createBool = create_bool,
#endif
    .createNil = create_nil,
    .freeObject = free_nothing,
};

redisReader *cwist_jq__replies_reader(void)
{
    return redisReaderCreateWithFunctions(&functions);
}
