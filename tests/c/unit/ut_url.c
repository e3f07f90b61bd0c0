/* Connection URLs: what they mean, and what is refused without repeating a password. */
#include "core/internal.h"
#include "harness.h"

static void parse(cwist_jq__url *url, const char *text)
{
    CHECK_INT(CWIST_SUCCESS, cwist_jq__url_parse(url, text));
}

static void a_full_redis_url(void)
{
    cwist_jq__url url;
    parse(&url, "redis://us%65r:p%40ss%3Aword@example.org:7000/3");
    CHECK_INT(CWIST_JQ_SCHEME_REDIS, url.scheme);
    CHECK_STR("user", url.user);
    CHECK_STR("p@ss:word", url.password);
    CHECK_STR("example.org", url.host);
    CHECK_INT(7000, url.port);
    CHECK_INT(3, url.database);
    CHECK_STR("redis://example.org:7000/3", url.label);
    cwist_jq__url_clear(&url);
}

static void parts_that_are_left_out_have_defaults(void)
{
    cwist_jq__url url;
    parse(&url, "redis://:secret@localhost");
    CHECK_STR(NULL, url.user);
    CHECK_STR("secret", url.password);
    CHECK_INT(6379, url.port);
    CHECK_INT(0, url.database);
    cwist_jq__url_clear(&url);

    parse(&url, "rediss://[::1]:6380/");
    CHECK_INT(CWIST_JQ_SCHEME_REDISS, url.scheme);
    CHECK_STR("::1", url.host);
    CHECK_STR("rediss://[::1]:6380/0", url.label);
    cwist_jq__url_clear(&url);
}

static void a_unix_socket(void)
{
    cwist_jq__url url;
    parse(&url, "unix:///run/redis%20one.sock?db=2");
    CHECK_STR("/run/redis one.sock", url.path);
    CHECK_INT(2, url.database);
    CHECK_STR(NULL, url.host);
    cwist_jq__url_clear(&url);
}

static void several_nats_servers(void)
{
    cwist_jq__url url;
    parse(&url, "nats://u:p@a,nats://b:4223,[::1]:5/");
    CHECK_INT(CWIST_JQ_SCHEME_NATS, url.scheme);
    CHECK_STR("u", url.user);
    CHECK_STR("p", url.password);
    CHECK_STR("a", url.host);
    CHECK_STR("nats://a:4222,nats://b:4223,nats://[::1]:5", url.servers);
    CHECK_STR(url.servers, url.label);
    cwist_jq__url_clear(&url);
}

static void stores_in_memory(void)
{
    cwist_jq__url url;
    parse(&url, "memory://my.store:1_a-B");
    CHECK_INT(CWIST_JQ_SCHEME_MEMORY, url.scheme);
    CHECK_STR("my.store:1_a-B", url.store);
    CHECK_STR("memory://my.store:1_a-B", url.label);
    cwist_jq__url_clear(&url);

    parse(&url, "memory://");
    CHECK_STR(NULL, url.store);
    CHECK_STR("memory://", url.label);
    cwist_jq__url_clear(&url);
}

static void tls_options(void)
{
    cwist_jq__url url;
    parse(&url,
          "rediss://u:p@h:7/2?tls_ca=/a%26b/%40ca.pem&tls_cert=c.pem&tls_key=/k&tls_verify=no");
    CHECK_STR("u", url.user);
    CHECK_STR("p", url.password);
    CHECK_STR("h", url.host);
    CHECK_INT(7, url.port);
    CHECK_INT(2, url.database);
    CHECK_STR("/a&b/@ca.pem", url.tls.ca);
    CHECK_STR("c.pem", url.tls.cert);
    CHECK_STR("/k", url.tls.key);
    CHECK(url.tls.unverified);
    CHECK(cwist_jq__url_is_tls(&url));
    CHECK_STR("rediss://h:7/2", url.label);
    cwist_jq__url_clear(&url);

    parse(&url, "tls://u:p@a,tls://b:1/?tls_verify=yes");
    CHECK_STR("tls://a:4222,tls://b:1", url.servers);
    CHECK_STR(url.servers, url.label);
    CHECK_STR(NULL, url.tls.ca);
    CHECK(!url.tls.unverified);
    CHECK(cwist_jq__url_is_tls(&url));
    cwist_jq__url_clear(&url);

    parse(&url, "redis://u:p?q@h");
    CHECK_STR("p?q", url.password);
    CHECK(!url.tls.unverified);
    CHECK(!cwist_jq__url_is_tls(&url));
    cwist_jq__url_clear(&url);
}

static void the_name_in_a_certificate(void)
{
    CHECK_INT(11, cwist_jq__certificate_name_len("example.org", 11));
    CHECK_INT(11, cwist_jq__certificate_name_len("example.org.", 12));
    CHECK_INT(12, cwist_jq__certificate_name_len("example.org..", 13));
    CHECK_INT(1, cwist_jq__certificate_name_len(".", 1)); /* to OpenSSL "" is any name */
}

static void tls_options_that_are_refused(void)
{
    static const struct {
        const char *url;
        const char *text;
    } bad[] = {
        {"rediss://u:secret@h?", "an option other than tls_ca="},
        {"rediss://u:secret@h?tls_ca=/a&", "an option other than tls_ca="},
        {"rediss://u:secret@h?secret=1", "an option other than tls_ca="},
        {"rediss://u:p?secret@h", "write %3F for a ? in a password"},
        {"tls://u:secret@h?TLS_CA=/a", "an option other than tls_ca="},
        {"rediss://u:secret@h?tls_ca=/a&tls_ca=/b", "a TLS option twice"},
        {"rediss://u:secret@h?tls_verify=no&tls_verify=no", "a TLS option twice"},
        {"rediss://u:secret@h?tls_cert=", "a TLS option without a value"},
        {"rediss://u:secret@h?tls_cert", "a TLS option without a value"},
        {"rediss://u:secret@h?tls_key=/a", "a tls_key without its tls_cert"},
        {"rediss://u:secret@h?tls_verify=off", "a tls_verify other than yes and no"},
        {"rediss://u:secret@h?tls_ca=/a%00", "hexadecimal digits"},
        {"redis://u:secret@h?tls_ca=/a", "rediss:// and tls:// may end in ?tls_ca="},
        {"nats://u:secret@h?tls_ca=/a", "rediss:// and tls:// may end in ?tls_ca="},
        {"nats://u:secret@a,tls://b", "both nats:// and tls:// servers"},
        {"tls://u:secret@a,nats://b", "both nats:// and tls:// servers"},
        {"nats://u:secret@a,nats://u:secret@b", "credentials before a later server"},
        {"nats://u:secret@a,u:secret@b", "credentials before a later server"},
        {"tls://a,tls://secret@b,c", "credentials before a later server"},
        {"nats://u:secret,more@a", "%2C for a comma in a password"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cwist_jq__url url;
        if (cwist_jq__url_parse(&url, bad[i].url) != CWIST_ERROR_INVALID_PARAM) {
            harness_fail(__FILE__, __LINE__, "accepted: %s", bad[i].url);
        }
        CHECK_TEXT(bad[i].text);
        CHECK(strstr(cwist_job_last_error(), "secret") == NULL);
        CHECK_STR(NULL, url.tls.ca);
    }
}

static void what_is_refused(void)
{
    static const char *const bad[] = {
        "",
        "redis",
        "http://secret@host",
        "redis://",
        "redis://secret@",
        "redis://u:secret@h:0",
        "redis://u:secret@h:65536",
        "redis://u:secret@h:",
        "redis://u:secret@h/one",
        "redis://u:secret%@h",
        "redis://u:secret%0@h",
        "redis://u:secret%00@h",
        "redis://u:secret%zz@h",
        "redis://u:secret@[::1",
        "redis://u:secret@[::1]x",
        "redis://u:secret@h\r\nPING",
        "redis://u:secret@h h",
        "unix://secret",
        "unix:///p?secret=1",
        "unix:///p?db=x",
        "nats://u:secret@a,,b",
        "nats://u:secret@a:99999",
        "nats://u:secret@",
        "memory:/secret",
        "memory://secret/",
        "memory://secret name",
        "memory://secret?db=1",
        "memory://u:secret@h",
        ("memory://a0123456789012345678901234567890123456789012345678901234567890123456789012345678"
         "901234567890123456789012345678901234567890123456789"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cwist_jq__url url;
        if (cwist_jq__url_parse(&url, bad[i]) != CWIST_ERROR_INVALID_PARAM) {
            harness_fail(__FILE__, __LINE__, "accepted: %s", bad[i]);
        }
        CHECK(strstr(cwist_job_last_error(), "secret") == NULL);
        CHECK_TEXT("redis://[user:password@]host");
    }
    cwist_jq__url url;
    CHECK_INT(CWIST_ERROR_INVALID_PARAM, cwist_jq__url_parse(&url, NULL));
}

TEST_MAIN({"a_full_redis_url", a_full_redis_url},
          {"parts_that_are_left_out_have_defaults", parts_that_are_left_out_have_defaults},
          {"a_unix_socket", a_unix_socket}, {"several_nats_servers", several_nats_servers},
          {"stores_in_memory", stores_in_memory}, {"tls_options", tls_options},
          {"the_name_in_a_certificate", the_name_in_a_certificate},
          {"tls_options_that_are_refused", tls_options_that_are_refused},
          {"what_is_refused", what_is_refused})
