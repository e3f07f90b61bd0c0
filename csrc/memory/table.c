/* Tables: chains of links in an array of places, which doubles when it is full. */
#include "memory/memory.h"

#define FIRST_SIZE 64

static cwist_jq__memory_link **place_of(const cwist_jq__memory_table *table, uint64_t hash)
{
    return &table->places[hash & (table->size - 1)];
}

static void push(const cwist_jq__memory_table *table, cwist_jq__memory_link *link)
{
    cwist_jq__memory_link **place = place_of(table, link->hash);

    link->next = *place;
    *place = link;
}

bool cwist_jq__memory_table_reserve(cwist_jq__memory_table *table)
{
    if (table->count < table->size) {
        return true;
    }
    cwist_jq__memory_table larger = {.size = table->size != 0 ? table->size * 2 : FIRST_SIZE,
                                     .count = table->count};
    larger.places = cwist_jq__calloc(larger.size, sizeof(cwist_jq__memory_link *));
    if (larger.places == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->size; i++) {
        for (cwist_jq__memory_link *link = table->places[i]; link != NULL;) {
            cwist_jq__memory_link *next = link->next;
            push(&larger, link);
            link = next;
        }
    }
    cwist_jq__free(table->places);
    *table = larger;
    return true;
}

void cwist_jq__memory_table_add(cwist_jq__memory_table *table, cwist_jq__memory_link *link,
                                uint64_t hash)
{
    link->hash = hash;
    push(table, link);
    table->count++;
}

void cwist_jq__memory_table_remove(cwist_jq__memory_table *table, cwist_jq__memory_link *link)
{
    cwist_jq__memory_link **at = place_of(table, link->hash);

    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    table->count--;
}

static cwist_jq__memory_link *same(cwist_jq__memory_link *link, uint64_t hash)
{
    while (link != NULL && link->hash != hash) {
        link = link->next;
    }
    return link;
}

cwist_jq__memory_link *cwist_jq__memory_table_first(const cwist_jq__memory_table *table,
                                                    uint64_t hash)
{
    return table->size != 0 ? same(*place_of(table, hash), hash) : NULL;
}

cwist_jq__memory_link *cwist_jq__memory_table_next(const cwist_jq__memory_link *link)
{
    return same(link->next, link->hash);
}

void cwist_jq__memory_table_clear(cwist_jq__memory_table *table)
{
    cwist_jq__free(table->places);
    *table = (cwist_jq__memory_table){0};
}
