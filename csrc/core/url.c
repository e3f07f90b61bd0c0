/*
 * Connection URLs. A text about a bad URL names the part that is wrong and never repeats the URL:
 * a password may stand in it.
 */
#include <string.h>

#include "core/internal.h"

#define OPTIONS "tls_ca=/path&tls_cert=/path&tls_key=/path&tls_verify=no"
#define FORMS                                                                                      \
    "expected redis://[user:password@]host[:port][/database], rediss://, "                         \
    "unix:///path[?db=N], nats://[user:password@]host[:port],..., tls:// or memory://[name]; "     \
    "rediss:// and tls:// may end in ?" OPTIONS

static int invalid(const char *why)
{
    return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM, "url %s; " FORMS, why);
}

/* A piece of the URL that is not copied yet. */
typedef struct span {
    const char *text;
    size_t len;
} span;

static span span_of(const char *begin, const char *end)
{
    return (span){begin, (size_t)(end - begin)};
}

static const char *span_find(span in, char c)
{
    return in.len != 0 ? memchr(in.text, c, in.len) : NULL;
}

static const char *span_end(span in)
{
    return in.text + in.len;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Copies a span and decodes its %XX. */
static int decode(char **out, span in)
{
    char *copy = cwist_jq__strndup(in.text, in.len);
    size_t to = 0;

    if (copy == NULL) {
        return cwist_jq__no_memory();
    }
    for (size_t from = 0; from < in.len; from++) {
        char c = in.text[from];
        if (c == '%') {
            bool whole = in.len - from > 2;
            int high = whole ? hex_digit(in.text[from + 1]) : -1;
            int low = whole ? hex_digit(in.text[from + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0)) {
                cwist_jq__free(copy);
                return invalid("has a % that is not followed by two hexadecimal digits (not 00)");
            }
            c = (char)(high << 4 | low);
            from += 2;
        }
        copy[to++] = c;
    }
    copy[to] = '\0';
    *out = copy;
    return CWIST_SUCCESS;
}

/* Reads a decimal number that fills the span. */
static bool parse_number(span in, int least, int most, int *value)
{
    long number = 0;

    if (in.len == 0 || in.len > 5) {
        return false;
    }
    for (size_t i = 0; i < in.len; i++) {
        if (in.text[i] < '0' || in.text[i] > '9') {
            return false;
        }
        number = number * 10 + (in.text[i] - '0');
    }
    *value = (int)number;
    return number >= least && number <= most;
}

static bool host_is_clean(span host)
{
    for (size_t i = 0; i < host.len; i++) {
        unsigned char c = (unsigned char)host.text[i];
        if (c <= 0x20 || c >= 0x7F || strchr("/?#@,\"\\", c) != NULL) {
            return false;
        }
    }
    return host.len != 0 && host.len <= 253;
}

/* Splits host[:port] or [v6]:port; *port keeps its value when none is given. */
static int split_host(span in, span *host, int *port)
{
    const char *colon;

    if (in.len != 0 && in.text[0] == '[') {
        const char *bracket = span_find(in, ']');
        if (bracket == NULL) {
            return invalid("has a [ without its ]");
        }
        *host = span_of(in.text + 1, bracket);
        colon = bracket + 1 < span_end(in) ? bracket + 1 : NULL;
        if (colon != NULL && *colon != ':') {
            return invalid("has something between ] and the port");
        }
    } else {
        colon = span_find(in, ':');
        *host = span_of(in.text, colon != NULL ? colon : span_end(in));
    }
    if (!host_is_clean(*host)) {
        return invalid("has no host or one with a character that no host name has");
    }
    if (colon != NULL && !parse_number(span_of(colon + 1, span_end(in)), 1, 65535, port)) {
        return invalid("has a port outside 1 to 65535");
    }
    return CWIST_SUCCESS;
}

static int take_credentials(cwist_jq__url *url, span *rest)
{
    const char *at = NULL;

    for (const char *c = rest->text; c < span_end(*rest); c++) {
        at = *c == '@' ? c : at; /* the last one: a password may hold another */
    }
    if (at == NULL) {
        return CWIST_SUCCESS;
    }
    span credentials = span_of(rest->text, at);
    const char *colon = span_find(credentials, ':');
    span user = span_of(credentials.text, colon != NULL ? colon : at);

    *rest = span_of(at + 1, span_end(*rest));
    int status = user.len != 0 ? decode(&url->user, user) : CWIST_SUCCESS;
    if (status == CWIST_SUCCESS && colon != NULL && colon + 1 < at) {
        status = decode(&url->password, span_of(colon + 1, at));
    }
    return status;
}

bool cwist_jq__url_is_tls(const cwist_jq__url *url)
{
    return url->scheme == CWIST_JQ_SCHEME_REDISS || url->scheme == CWIST_JQ_SCHEME_TLS;
}

size_t cwist_jq__certificate_name_len(const char *host, size_t len)
{
    return len > 1 && host[len - 1] == '.' ? len - 1 : len;
}

static int no_memory_unless(bool fine)
{
    return fine ? CWIST_SUCCESS : cwist_jq__no_memory();
}

static bool equals(span in, const char *text)
{
    return in.len == strlen(text) && memcmp(in.text, text, in.len) == 0;
}

/* Takes one "name=value" of the query; verify is what tls_verify said, NULL when it did not. */
static int take_option(cwist_jq__tls_options *tls, span option, char **verify)
{
    const struct {
        const char *name;
        char **value;
    } known[] = {{"tls_ca", &tls->ca},
                 {"tls_cert", &tls->cert},
                 {"tls_key", &tls->key},
                 {"tls_verify", verify}};
    const char *equal = span_find(option, '=');
    span name = span_of(option.text, equal != NULL ? equal : span_end(option));

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!equals(name, known[i].name)) {
            continue;
        }
        if (*known[i].value != NULL) {
            return invalid("has a TLS option twice");
        }
        if (equal == NULL || equal + 1 == span_end(option)) {
            return invalid("has a TLS option without a value");
        }
        return decode(known[i].value, span_of(equal + 1, span_end(option)));
    }
    return invalid("has an option other than " OPTIONS " (write %3F for a ? in a password)");
}

static int judge_options(cwist_jq__tls_options *tls, const char *verify)
{
    if (verify != NULL && strcmp(verify, "no") != 0 && strcmp(verify, "yes") != 0) {
        return invalid("has a tls_verify other than yes and no");
    }
    if (tls->key != NULL && tls->cert == NULL) {
        return invalid("has a tls_key without its tls_cert");
    }
    tls->unverified = verify != NULL && strcmp(verify, "no") == 0;
    return CWIST_SUCCESS;
}

/* Takes the query off an encrypted URL. It begins at the first ?, as in any URL. */
static int take_tls_options(cwist_jq__url *url, span *rest)
{
    const char *query = span_find(*rest, '?');
    char *verify = NULL;
    int status = CWIST_SUCCESS;

    if (query == NULL || !cwist_jq__url_is_tls(url)) {
        return CWIST_SUCCESS;
    }
    for (const char *at = query; at != NULL && status == CWIST_SUCCESS;) {
        span left = span_of(at + 1, span_end(*rest));
        at = span_find(left, '&');
        span option = span_of(left.text, at != NULL ? at : span_end(left));
        status = take_option(&url->tls, option, &verify);
    }
    if (status == CWIST_SUCCESS) {
        status = judge_options(&url->tls, verify);
    }
    cwist_jq__free(verify);
    *rest = span_of(rest->text, query);
    return status;
}

static int parse_redis(cwist_jq__url *url, span rest)
{
    int status = take_credentials(url, &rest);
    const char *slash = span_find(rest, '/');
    span host = span_of(rest.text, slash != NULL ? slash : span_end(rest));

    url->port = 6379;
    if (status == CWIST_SUCCESS) {
        status = split_host(host, &host, &url->port);
    }
    if (status != CWIST_SUCCESS) {
        return status;
    }
    if (slash != NULL && slash + 1 < span_end(rest) &&
        !parse_number(span_of(slash + 1, span_end(rest)), 0, 65535, &url->database)) {
        return invalid("has a database that is not a number from 0 to 65535");
    }
    url->host = cwist_jq__strndup(host.text, host.len);
    bool v6 = span_find(host, ':') != NULL;
    url->label = url->host == NULL
                     ? NULL
                     : cwist_jq__format(v6 ? "%s://[%s]:%d/%d" : "%s://%s:%d/%d",
                                        cwist_jq__url_is_tls(url) ? "rediss" : "redis", url->host,
                                        url->port, url->database);
    return no_memory_unless(url->label != NULL);
}

static int parse_unix(cwist_jq__url *url, span rest)
{
    int status = take_credentials(url, &rest);
    const char *query = span_find(rest, '?');
    span path = span_of(rest.text, query != NULL ? query : span_end(rest));

    if (status != CWIST_SUCCESS) {
        return status;
    }
    if (path.len == 0 || path.text[0] != '/') {
        return invalid("has no absolute path for the unix socket");
    }
    if (query != NULL) {
        span value = span_of(query + 1, span_end(rest));
        if (value.len < 4 || memcmp(value.text, "db=", 3) != 0 ||
            !parse_number(span_of(value.text + 3, span_end(value)), 0, 65535, &url->database)) {
            return invalid("has a query other than ?db=N with N from 0 to 65535");
        }
    }
    status = decode(&url->path, path);
    if (status == CWIST_SUCCESS) {
        url->label = cwist_jq__format("unix://%s?db=%d", url->path, url->database);
        status = no_memory_unless(url->label != NULL);
    }
    return status;
}

/* Appends one server to the comma-separated list. */
static int add_server(cwist_jq__url *url, span host, int port)
{
    const char *before = url->servers != NULL ? url->servers : "";
    bool v6 = span_find(host, ':') != NULL;
    char *list = cwist_jq__format(
        v6 ? "%s%s%s[%.*s]:%d" : "%s%s%s%.*s:%d", before, *before != '\0' ? "," : "",
        cwist_jq__url_is_tls(url) ? "tls://" : "nats://", (int)host.len, host.text, port);
    cwist_jq__free(url->servers);
    url->servers = list;
    return no_memory_unless(list != NULL);
}

/*
 * The last @ ends the credentials. A server before it would be taken for a part of the password,
 * which would go to another server.
 */
static bool repeats_credentials(span list)
{
    const char *comma = span_find(list, ',');
    return comma != NULL && span_find(span_of(comma, span_end(list)), '@') != NULL;
}

/* A server of the list may repeat the scheme. None may be left unencrypted by another's. */
static int take_scheme(const cwist_jq__url *url, span *one)
{
    bool plain = one->len > 7 && memcmp(one->text, "nats://", 7) == 0;
    bool encrypted = one->len > 6 && memcmp(one->text, "tls://", 6) == 0;

    if (cwist_jq__url_is_tls(url) ? plain : encrypted) {
        return invalid("has both nats:// and tls:// servers");
    }
    one->text += plain ? 7 : encrypted ? 6 : 0;
    one->len -= plain ? 7 : encrypted ? 6 : 0;
    return CWIST_SUCCESS;
}

static int parse_nats(cwist_jq__url *url, span rest)
{
    int status = repeats_credentials(rest)
                     ? invalid("has credentials before a later server; write them once, before "
                               "the first, and %2C for a comma in a password")
                     : take_credentials(url, &rest);

    while (status == CWIST_SUCCESS) {
        const char *comma = span_find(rest, ',');
        span one = span_of(rest.text, comma != NULL ? comma : span_end(rest));
        status = take_scheme(url, &one);
        if (status != CWIST_SUCCESS) {
            break;
        }
        if (one.len != 0 && span_end(one)[-1] == '/') {
            one.len--;
        }
        int port = 4222;
        span host = {NULL, 0};
        status = split_host(one, &host, &port);
        if (status == CWIST_SUCCESS && url->host == NULL) {
            url->port = port;
            url->host = cwist_jq__strndup(host.text, host.len);
            status = no_memory_unless(url->host != NULL);
        }
        if (status == CWIST_SUCCESS) {
            status = add_server(url, host, port);
        }
        if (comma == NULL) {
            break;
        }
        rest = span_of(comma + 1, span_end(rest));
    }
    if (status == CWIST_SUCCESS) {
        url->label = cwist_jq__strdup(url->servers);
        status = no_memory_unless(url->label != NULL);
    }
    return status;
}

#define STORE_NAME_MAX 128

static int parse_memory(cwist_jq__url *url, span rest)
{
    if (rest.len > STORE_NAME_MAX) {
        return invalid("has a name of more than 128 characters");
    }
    for (size_t i = 0; i < rest.len; i++) {
        if (!cwist_jq__name_char(rest.text[i])) {
            return invalid("has a name with a character other than A-Z a-z 0-9 _ - . :");
        }
    }
    url->store = rest.len != 0 ? cwist_jq__strndup(rest.text, rest.len) : NULL;
    url->label = cwist_jq__format("memory://%.*s", (int)rest.len, rest.text);
    return no_memory_unless(url->label != NULL && (url->store != NULL || rest.len == 0));
}

int cwist_jq__url_parse(cwist_jq__url *url, const char *text)
{
    static const struct {
        const char *prefix;
        cwist_jq__scheme scheme;
        int (*parse)(cwist_jq__url *url, span rest);
    } forms[] = {
        {"redis://", CWIST_JQ_SCHEME_REDIS, parse_redis},
        {"rediss://", CWIST_JQ_SCHEME_REDISS, parse_redis},
        {"unix://", CWIST_JQ_SCHEME_UNIX, parse_unix},
        {"nats://", CWIST_JQ_SCHEME_NATS, parse_nats},
        {"tls://", CWIST_JQ_SCHEME_TLS, parse_nats},
        {"memory://", CWIST_JQ_SCHEME_MEMORY, parse_memory},
    };

    memset(url, 0, sizeof *url);
    if (text == NULL) {
        return invalid("is NULL");
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t len = strlen(forms[i].prefix);
        if (strncmp(text, forms[i].prefix, len) == 0) {
            url->scheme = forms[i].scheme;
            span rest = {text + len, strlen(text + len)};
            int status = take_tls_options(url, &rest);
            if (status == CWIST_SUCCESS) {
                status = forms[i].parse(url, rest);
            }
            if (status != CWIST_SUCCESS) {
                cwist_jq__url_clear(url);
            }
            return status;
        }
    }
    return invalid("has no scheme that is known");
}

/* Overwrites a secret before its memory is given back. */
static void wipe(char *secret)
{
    for (volatile char *at = secret; at != NULL && *at != '\0'; at++) {
        *at = '\0';
    }
    cwist_jq__free(secret);
}

void cwist_jq__url_clear(cwist_jq__url *url)
{
    cwist_jq__free(url->user);
    wipe(url->password);
    cwist_jq__free(url->host);
    cwist_jq__free(url->path);
    cwist_jq__free(url->store);
    cwist_jq__free(url->servers);
    cwist_jq__free(url->tls.ca);
    cwist_jq__free(url->tls.cert);
    cwist_jq__free(url->tls.key);
    cwist_jq__free(url->label);
    memset(url, 0, sizeof *url);
}
