/* The server's times as it writes them, and its clock. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"
#include "platform/clock.h"

#define MS_PER_DAY UINT64_C(86400000)
#define CLOCK_MS 10000 /* how long what was learnt of the server's clock is used */

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

uint64_t cwist_jq__moment_read(cwist_jq__json value)
{
    char text[40];

    cwist_jq__json_copy(value, text, sizeof text);
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

/* The date of a day since 1970: the year, month and day whose days_to() it is. */
static void date_of(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    *year = 1970 + days / 366; /* not too late */
    while (days_to(*year + 1, 1, 1) <= days) {
        *year += 1;
    }
    *month = 1;
    while (*month < 12 && days_to(*year, *month + 1, 1) <= days) {
        *month += 1;
    }
    *day = days - days_to(*year, *month, 1) + 1;
}

void cwist_jq__moment_write(char *out, uint64_t ms)
{
    uint64_t rest = ms % MS_PER_DAY;
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;

    date_of((int64_t)(ms / MS_PER_DAY), &year, &month, &day);
    (void)snprintf(out, CWIST_JQ_MOMENT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
                   (unsigned)(year % 10000), (unsigned)month, (unsigned)day,
                   (unsigned)(rest / 3600000), (unsigned)(rest / 60000 % 60),
                   (unsigned)(rest / 1000 % 60), (unsigned)(rest % 1000));
}

/*
 * The server's time is from somewhere between the question and the answer. Taking it for that of
 * the question makes our idea of it late at most by the round trip, and never early.
 */
void cwist_jq__clock_note(cwist_jq__nats *nats, const cwist_jq__answer *answer, uint64_t asked)
{
    uint64_t ts = cwist_jq__moment_read(cwist_jq__json_member(answer->json, "ts"));

    if (ts != 0) {
        atomic_store(&nats->clock_ahead, (int64_t)(ts - asked / CWIST_JQ_MS));
        atomic_store(&nats->clock_until, cwist_jq__after_ms(CLOCK_MS));
    }
}

bool cwist_jq__clock_known(cwist_jq__nats *nats)
{
    return !cwist_jq__passed(atomic_load(&nats->clock_until));
}

uint64_t cwist_jq__clock_ms(cwist_jq__nats *nats)
{
    return cwist_jq__now() / CWIST_JQ_MS + (uint64_t)atomic_load(&nats->clock_ahead);
}
