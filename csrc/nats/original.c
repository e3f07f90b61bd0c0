/*
 * The original of a copy. A release that was cut leaves both, so whoever claims the copy deletes
 * the original. A sequence alone does not name it: the stream may have been made anew since.
 */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

/* Reads exactly `count` digits; -1 when there is something else. */
static int64_t digits(const char *at, int count)
{
    int64_t number = 0;

    for (int i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return -1;
        }
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_to(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year; /* years begin in March, so leap days come last */
    int64_t m = month <= 2 ? month + 9 : month - 3;

    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

/* "2026-11-29T19:54:11.672047443Z" in milliseconds since 1970; 0 when it cannot be read. */
static uint64_t read_time(const char *text)
{
    if (strlen(text) < 20) {
        return 0;
    }
    int64_t year = digits(text, 4);
    int64_t month = digits(text + 5, 2);
    int64_t day = digits(text + 8, 2);
    int64_t hour = digits(text + 11, 2);
    int64_t minute = digits(text + 14, 2);
    int64_t second = digits(text + 17, 2);
    int64_t ms = 0;

    if (year < 1970 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0) {
        return 0;
    }
    if (text[19] == '.') { /* the server leaves zeros at the end out */
        int64_t unit = 100;
        for (const char *at = text + 20; unit > 0 && *at >= '0' && *at <= '9'; at++) {
            ms += (*at - '0') * unit;
            unit /= 10;
        }
    }
    int64_t seconds = ((days_to(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    return (uint64_t)(seconds * 1000 + ms);
}

/* True when the stored message is the job that the copy carries on. */
static bool is_same_job(cwist_jq__json stored, const cwist_jq__origin *copy)
{
    natsMsg *message = NULL;
    natsMsg *bare = NULL;
    char time[40];
    const char *id = NULL;
    uint64_t first = 0;
    bool same = false;

    cwist_jq__json_copy(cwist_jq__json_member(stored, "time"), time, sizeof time);
    if (natsMsg_Create(&bare, "stored", NULL, NULL, 0) == NATS_OK &&
        cwist_jq__with_headers(&message, bare, cwist_jq__json_member(stored, "hdrs")) ==
            CWIST_SUCCESS) {
        id = cwist_jq__header_of(message, "Cwist-Id");
        if (id != NULL) {
            same = strcmp(id, copy->id) == 0 &&
                   cwist_jq__decimal(&first, cwist_jq__header_of(message, "Cwist-First")) &&
                   first == copy->first;
        } else {
            char sequence[24];
            (void)snprintf(sequence, sizeof sequence, "%llu", (unsigned long long)copy->from);
            same = strcmp(sequence, copy->id) == 0 && read_time(time) == copy->first;
        }
    }
    natsMsg_Destroy(message);
    natsMsg_Destroy(bare);
    return same;
}

int cwist_jq__delete_original(cwist_jq__queue *queue, const cwist_jq__origin *copy,
                              const cwist_jq__wait *wait)
{
    cwist_jq__nats_queue *own = cwist_jq__nats_queue_of(queue);
    cwist_jq__answer answer;
    char body[48];
    bool found = false;
    char *subject = cwist_jq__format("$JS.API.STREAM.MSG.GET.%s", own->stream);
    int status = CWIST_SUCCESS;

    memset(&answer, 0, sizeof answer);
    (void)snprintf(body, sizeof body, "{\"seq\":%llu}", (unsigned long long)copy->from);
    if (subject != NULL) {
        status = cwist_jq__api(&answer, cwist_jq__nats_of(queue), subject, body, wait);
    } else {
        status = cwist_jq__no_memory();
    }
    if (status == CWIST_SUCCESS && answer.error == 0) {
        found = is_same_job(cwist_jq__json_member(answer.json, "message"), copy);
    }
    cwist_jq__answer_clear(&answer);
    cwist_jq__free(subject);
    return found ? cwist_jq__delete_message(queue, copy->from, wait) : status;
}
