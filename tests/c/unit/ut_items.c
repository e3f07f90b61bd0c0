/* The rules for a job to store: the same on all engines, and each refusal names the field. */
#include "core/internal.h"
#include "harness.h"

/* Each of these is refused, and the text holds the words. */
static void refused(cwist_job_item_t item, const char *words)
{
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__check_item(&item));
    CHECK_TEXT(words);
    CHECK_TEXT("allowed");
}

static void accepted(cwist_job_item_t item)
{
    CHECK_INT(CWIST_SUCCESS, cwist_jq__check_item(&item));
}

static void payloads(void)
{
    accepted((cwist_job_item_t){.payload = NULL});
    accepted((cwist_job_item_t){.payload = "x", .len = 1});
    refused((cwist_job_item_t){.payload = NULL, .len = 1}, "payload is NULL");
}

static void delays(void)
{
    accepted((cwist_job_item_t){.delay_ms = 31536000000});
    refused((cwist_job_item_t){.delay_ms = 31536000001}, "delay_ms is 31536000001");
    refused((cwist_job_item_t){.delay_ms = UINT64_MAX}, "delay_ms is 18446744073709551615");
}

static void keys(void)
{
    char longest[257];

    memset(longest, 'k', sizeof longest);
    longest[255] = '\0';
    accepted((cwist_job_item_t){.dedupe_key = longest});
    accepted((cwist_job_item_t){.dedupe_key = " a.b*>{}:\xC3\xA9 "});
    longest[255] = 'k';
    longest[256] = '\0';
    refused((cwist_job_item_t){.dedupe_key = longest}, "dedupe_key has 256 bytes");
    refused((cwist_job_item_t){.dedupe_key = ""}, "dedupe_key is empty");
    refused((cwist_job_item_t){.dedupe_key = "a\nb"}, "control character U+000A");
    refused((cwist_job_item_t){.dedupe_key = "\xC2\x85"}, "control character U+0085");
    refused((cwist_job_item_t){.dedupe_key = "\xff"}, "dedupe_key is not UTF-8 at byte 0");
}

static cwist_job_item_t with_header(const cwist_job_header_t *header)
{
    return (cwist_job_item_t){.headers = header, .header_count = 1};
}

static void header_names(void)
{
    char longest[130];
    static const char *const good[] = {"traceparent", "X-Request-Id", "a",    "9",
                                       "Natsy",       "Cwist",        "Nats", "cwistle-1"};
    static const char *const bad[] = {"", "a b", "a:b", "a_b", "\xC3\xA9", "a\r\nb", "a."};
    static const char *const kept[] = {"Nats-Msg-Id", "nats-x", "NATS-", "Cwist-Id", "cWIST-a"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        accepted(with_header(&(cwist_job_header_t){good[i], "v"}));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused(with_header(&(cwist_job_header_t){bad[i], "v"}), "headers[0].name");
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        cwist_job_item_t item = with_header(&(cwist_job_header_t){kept[i], "v"});
        CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__check_item(&item));
        CHECK_TEXT("are kept for the servers");
    }
    refused(with_header(&(cwist_job_header_t){NULL, "v"}), "headers[0].name");
    memset(longest, 'n', sizeof longest);
    longest[128] = '\0';
    accepted(with_header(&(cwist_job_header_t){longest, ""}));
    longest[128] = 'n';
    longest[129] = '\0';
    refused(with_header(&(cwist_job_header_t){longest, ""}), "headers[0].name has 129");
}

static void header_values(void)
{
    static char longest[4098];
    cwist_job_header_t header = {"n", longest};
    cwist_job_header_t none = {"n", NULL};
    cwist_job_item_t item = with_header(&none);

    memset(longest, 'v', sizeof longest);
    longest[4096] = '\0';
    accepted(with_header(&header));
    longest[4096] = 'v';
    longest[4097] = '\0';
    refused(with_header(&header), "headers[0].value has 4097 bytes");
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__check_item(&item));
    CHECK_TEXT("headers[0].value is NULL");
    accepted(with_header(&(cwist_job_header_t){"n", "a b: \xE2\x82\xAC"}));
    refused(with_header(&(cwist_job_header_t){"n", " a"}), "headers[0].value has a space");
    refused(with_header(&(cwist_job_header_t){"n", "a "}), "headers[0].value has a space");
    refused(with_header(&(cwist_job_header_t){"n", "a\r\nNats-Rollup: all"}), "U+000D");
    refused(with_header(&(cwist_job_header_t){"n", "\t"}), "U+0009");
    refused(with_header(&(cwist_job_header_t){"n", "\xC0\x80"}), "not UTF-8");
}

static void header_lists(void)
{
    static char names[CWIST_JOB_HEADERS_MAX + 1][4];
    cwist_job_header_t many[CWIST_JOB_HEADERS_MAX + 1];

    for (size_t i = 0; i <= CWIST_JOB_HEADERS_MAX; i++) {
        names[i][0] = 'n';
        names[i][1] = (char)('0' + i / 10);
        names[i][2] = (char)('0' + i % 10);
        many[i] = (cwist_job_header_t){names[i], "v"};
    }
    accepted((cwist_job_item_t){.headers = many, .header_count = CWIST_JOB_HEADERS_MAX});
    refused((cwist_job_item_t){.headers = many, .header_count = CWIST_JOB_HEADERS_MAX + 1},
            "header_count is 65");
    refused((cwist_job_item_t){.header_count = 1}, "headers is NULL");
    many[7].name = "n03";
    refused((cwist_job_item_t){.headers = many, .header_count = 9},
            "headers[7].name is n03, as that of headers[3]");
    many[7].name = "N03"; /* another name */
    accepted((cwist_job_item_t){.headers = many, .header_count = 9});
}

TEST_MAIN({"payloads", payloads}, {"delays", delays}, {"keys", keys},
          {"header_names", header_names}, {"header_values", header_values},
          {"header_lists", header_lists})
