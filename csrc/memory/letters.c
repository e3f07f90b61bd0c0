/*
 * Dead letters: an array in the order of their numbers. One that is taken out leaves a hole; the
 * holes go when there are more of them than letters.
 */
#include "memory/memory.h"

#define FIRST_ROOM 64

/* The place of the first letter, or hole, with this number or a larger one. */
static size_t place_of(const cwist_jq__memory_letters *letters, uint64_t number)
{
    size_t low = letters->begin;
    size_t high = letters->end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (letters->at[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Moves the letters together, to the front. */
static void close_holes(cwist_jq__memory_letters *letters)
{
    size_t to = 0;

    for (size_t from = letters->begin; from < letters->end; from++) {
        if (letters->at[from].job != NULL) {
            letters->at[to++] = letters->at[from];
        }
    }
    letters->begin = 0;
    letters->end = to;
}

bool cwist_jq__memory_letters_reserve(cwist_jq__memory_letters *letters)
{
    if (letters->end < letters->room) {
        return true;
    }
    if (letters->count <= letters->room / 2 && letters->room != 0) {
        close_holes(letters);
        return true;
    }
    size_t room = letters->room != 0 ? letters->room * 2 : FIRST_ROOM;
    cwist_jq__memory_letter *at = cwist_jq__realloc(letters->at, room * sizeof *at);
    if (at == NULL) {
        return false;
    }
    letters->at = at;
    letters->room = room;
    return true;
}

cwist_jq__memory_letter *cwist_jq__memory_letters_add(cwist_jq__memory_letters *letters)
{
    cwist_jq__memory_letter *letter = &letters->at[letters->end++];

    *letter = (cwist_jq__memory_letter){.number = ++letters->last_number};
    letters->count++;
    return letter;
}

void cwist_jq__memory_letters_remove(cwist_jq__memory_letters *letters,
                                     cwist_jq__memory_letter *letter)
{
    letter->job = NULL;
    letters->count--;
    while (letters->begin < letters->end && letters->at[letters->begin].job == NULL) {
        letters->begin++;
    }
    while (letters->begin < letters->end && letters->at[letters->end - 1].job == NULL) {
        letters->end--;
    }
    if (letters->end - letters->begin > 2 * letters->count + FIRST_ROOM) {
        close_holes(letters);
    }
}

cwist_jq__memory_letter *cwist_jq__memory_letters_find(const cwist_jq__memory_letters *letters,
                                                       uint64_t number)
{
    size_t place = place_of(letters, number);
    bool there = place < letters->end && letters->at[place].number == number &&
                 letters->at[place].job != NULL;

    return there ? &letters->at[place] : NULL;
}

cwist_jq__memory_letter *cwist_jq__memory_letters_after(const cwist_jq__memory_letters *letters,
                                                        uint64_t number)
{
    size_t place = place_of(letters, number + 1);

    while (place < letters->end && letters->at[place].job == NULL) {
        place++;
    }
    return place < letters->end ? &letters->at[place] : NULL;
}

cwist_jq__memory_letter *cwist_jq__memory_letters_before(const cwist_jq__memory_letters *letters,
                                                         uint64_t number)
{
    size_t place = place_of(letters, number);

    while (place > letters->begin && letters->at[place - 1].job == NULL) {
        place--;
    }
    return place > letters->begin ? &letters->at[place - 1] : NULL;
}
