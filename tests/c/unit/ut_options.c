/* Names, types, numbers: the same rule on both engines, refused by name before anything is sent. */
#include "core/internal.h"
#include "harness.h"

static int apply(cwist_job_queue_opts_t opts)
{
    cwist_jq__queue queue;
    memset(&queue, 0, sizeof queue);
    int status = cwist_jq__apply_opts(&queue, &opts);
    cwist_jq__free(queue.name);
    cwist_jq__free(queue.consumer);
    return status;
}

static int apply_name(const char *name)
{
    return apply((cwist_job_queue_opts_t){.name = name});
}

static void defaults(void)
{
    cwist_jq__queue a;
    cwist_jq__queue b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    CHECK_INT(CWIST_SUCCESS, cwist_jq__apply_opts(&a, &(cwist_job_queue_opts_t){.name = "q"}));
    CHECK_INT(CWIST_SUCCESS, cwist_jq__apply_opts(&b, &(cwist_job_queue_opts_t){.name = "q"}));
    CHECK_INT(30000, a.visibility_ms);
    CHECK_INT(5, a.max_retries);
    CHECK_INT(0, a.retry_delay_ms);
    CHECK(a.consumer_is_ours);
    CHECK(strcmp(a.consumer, b.consumer) != 0);
    cwist_jq__free(a.name);
    cwist_jq__free(a.consumer);
    cwist_jq__free(b.name);
    cwist_jq__free(b.consumer);
}

/* N01, N02: every name works everywhere or is refused in words. */
static void names(void)
{
    char longest[130];
    memset(longest, 'a', sizeof longest);

    CHECK_INT(CWIST_SUCCESS, apply_name("emails"));
    CHECK_INT(CWIST_SUCCESS, apply_name("a.b:c-d_E9"));
    CHECK_INT(CWIST_SUCCESS, apply_name("_DEAD_"));
    CHECK_INT(CWIST_SUCCESS, apply_name("."));
    longest[128] = '\0';
    CHECK_INT(CWIST_SUCCESS, apply_name(longest));

    static const char *const bad[] = {
        "",          " ",      "a b",  "jobs ",       "\tjobs",           "a*",   ">", "/x", "a\\b",
        "\xC3\xBCn", "x\r\ny", "a{b}", "emails_DEAD", "\xF0\x9F\x98\x80", "_DEAD"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(CWIST_ERROR_INVALID_PARAM, apply_name(bad[i]));
        CHECK_TEXT("name");
        CHECK_TEXT("1 to 128 of A-Z a-z 0-9 _ - . :");
    }
    memset(longest, 'a', 129);
    longest[129] = '\0';
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, apply_name(longest));
    memset(longest, '.', 84);
    longest[84] = '\0';
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, apply_name(longest));
    CHECK_TEXT("allowed: 250");
    longest[83] = '\0';
    CHECK_INT(CWIST_SUCCESS, apply_name(longest));
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, apply_name(NULL));
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__apply_opts(NULL, NULL));
}

static void consumers(void)
{
    static const char *const bad[] = {"", "a b", "a\r\nb", "\xC3\xBC", "\x7f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(CWIST_ERROR_INVALID_PARAM,
                  apply((cwist_job_queue_opts_t){.name = "q", .consumer = bad[i]}));
        CHECK_TEXT("consumer");
    }
    CHECK_INT(CWIST_SUCCESS, apply((cwist_job_queue_opts_t){.name = "q", .consumer = "a.b*>{}"}));
}

/* N04: nothing is clamped, nothing wraps. */
static void numbers(void)
{
    static const struct {
        cwist_job_queue_opts_t opts;
        const char *field; /* NULL: accepted */
    } rows[] = {
        {{.name = "q", .visibility_timeout_ms = 9}, "visibility_timeout_ms"},
        {{.name = "q", .visibility_timeout_ms = 10}, NULL},
        {{.name = "q", .visibility_timeout_ms = 604800000}, NULL},
        {{.name = "q", .visibility_timeout_ms = 604800001}, "visibility_timeout_ms"},
        {{.name = "q", .visibility_timeout_ms = UINT64_MAX}, "visibility_timeout_ms"},
        {{.name = "q", .max_retries = 1000000}, NULL},
        {{.name = "q", .max_retries = 1000001}, "max_retries"},
        {{.name = "q", .max_retries = UINT32_MAX}, "max_retries"},
        {{.name = "q", .retry_delay_ms = 31536000000}, NULL},
        {{.name = "q", .retry_delay_ms = 31536000001}, "retry_delay_ms"},
        {{.name = "q", .retry_delay_ms = UINT64_MAX}, "retry_delay_ms"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(rows[i].field == NULL ? CWIST_SUCCESS : CWIST_ERROR_INVALID_PARAM,
                  apply(rows[i].opts));
        if (rows[i].field != NULL) {
            CHECK_TEXT(rows[i].field);
            CHECK_TEXT("allowed:");
        }
    }
}

static int apply_ext(uint64_t retry_delay_ms, cwist_job_queue_ext_opts_t ext)
{
    cwist_jq__queue queue;

    memset(&queue, 0, sizeof queue);
    queue.retry_delay_ms = retry_delay_ms;
    ext.struct_size = sizeof ext;
    return cwist_jq__apply_ext_opts(&queue, &ext);
}

static void further_numbers(void)
{
    static const struct {
        uint64_t retry_delay_ms;
        cwist_job_queue_ext_opts_t ext;
        const char *field; /* NULL: accepted */
    } rows[] = {
        {0, {.retry_backoff = CWIST_JOB_BACKOFF_EXPONENTIAL}, NULL},
        {0, {.retry_backoff = 2}, "retry_backoff"},
        {0, {.retry_backoff = -1}, "retry_backoff"},
        {0, {.retry_delay_max_ms = 1}, NULL},
        {5, {.retry_delay_max_ms = 5}, NULL},
        {5, {.retry_delay_max_ms = 4}, "retry_delay_max_ms"},
        {31536000000, {.retry_delay_max_ms = 0}, NULL},
        {0, {.retry_delay_max_ms = 31536000000}, NULL},
        {0, {.retry_delay_max_ms = 31536000001}, "retry_delay_max_ms"},
        {0, {.retry_jitter_percent = 100}, NULL},
        {0, {.retry_jitter_percent = 101}, "retry_jitter_percent"},
        {0, {.max_length = 1000000000}, NULL},
        {0, {.max_length = 1000000001}, "max_length"},
        {0, {.max_length = UINT64_MAX}, "max_length"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(rows[i].field == NULL ? CWIST_SUCCESS : CWIST_ERROR_INVALID_PARAM,
                  apply_ext(rows[i].retry_delay_ms, rows[i].ext));
        if (rows[i].field != NULL) {
            CHECK_TEXT(rows[i].field);
            CHECK_TEXT("allowed:");
        }
    }
}

/* A struct of an older version is shorter: what it lacks has its default. */
static void further_options_of_other_versions(void)
{
    cwist_jq__queue queue;
    cwist_job_queue_ext_opts_t ext;

    memset(&queue, 0, sizeof queue);
    CHECK_INT(CWIST_SUCCESS, cwist_jq__apply_ext_opts(&queue, NULL));
    CHECK_INT(3600000, queue.retry_delay_max_ms);
    cwist_job_queue_ext_opts_init(&ext);
    cwist_job_queue_ext_opts_init(NULL);
    CHECK_INT(sizeof ext, ext.struct_size);
    ext.auto_renew = true;
    ext.max_length = 7;
    ext.struct_size = offsetof(cwist_job_queue_ext_opts_t, auto_renew);
    CHECK_INT(CWIST_SUCCESS, cwist_jq__apply_ext_opts(&queue, &ext));
    CHECK_INT(7, queue.max_length);
    CHECK(!queue.auto_renew);
    ext.struct_size = 0;
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__apply_ext_opts(&queue, &ext));
    CHECK_TEXT("struct_size is 0");
    ext.struct_size = sizeof ext + 1;
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__apply_ext_opts(&queue, &ext));
}

static int check_type(const char *type)
{
    return cwist_jq__check_type(type, strlen(type));
}

/* P01: types are UTF-8 without control characters. */
static void types(void)
{
    char longest[257];
    memset(longest, 'x', sizeof longest);
    longest[255] = '\0';

    CHECK_INT(CWIST_SUCCESS, check_type(""));
    CHECK_INT(CWIST_SUCCESS, check_type("\xC3\xA9 mail \xF0\x9F\x98\x80"));
    CHECK_INT(CWIST_SUCCESS, check_type(longest));
    longest[255] = 'x';
    longest[256] = '\0';
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, check_type(longest));
    static const char *const bad[] = {"a\nb",     "\x01",         "\x7f",
                                      "\xC2\x85", "\xFF",         "\xC3",
                                      "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                      "\xE2\x82", "a\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(CWIST_ERROR_INVALID_PARAM, check_type(bad[i]));
        CHECK_TEXT("type");
    }
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__check_type("a\0b", 3));
}

/* N03: two queues never meet. */
static void encoded_names(void)
{
    char *stream = cwist_jq__nats_stream("a.b:c");
    char *plain = cwist_jq__redis_prefix("a:dead", false);
    char *cluster = cwist_jq__redis_prefix("a", true);
    CHECK_STR("a=2Eb=3Ac", stream);
    CHECK_STR("cwist:jq:a:dead:", plain);
    CHECK_STR("cwist:jq:{a}:", cluster);
    cwist_jq__free(stream);
    cwist_jq__free(plain);
    cwist_jq__free(cluster);
}

TEST_MAIN({"defaults", defaults}, {"names", names}, {"consumers", consumers}, {"numbers", numbers},
          {"further_numbers", further_numbers},
          {"further_options_of_other_versions", further_options_of_other_versions},
          {"types", types}, {"encoded_names", encoded_names})
