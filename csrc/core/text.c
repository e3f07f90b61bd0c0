/* The rule for texts that are stored with a job. */
#include "core/internal.h"

/*
 * Reads one UTF-8 character. Returns its length, or 0 when the bytes are not UTF-8 (RFC 3629: no
 * overlong forms, no surrogates, nothing over U+10FFFF).
 */
static size_t utf8_next(const unsigned char *at, size_t left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = at[0] < 0x80 ? 1 : at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : at[0] >= 0xC2 ? 2 : 0;

    if (len == 0 || len > left || at[0] > 0xF4) {
        return 0;
    }
    uint32_t value = len == 1 ? at[0] : at[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xC0u) != 0x80) {
            return 0;
        }
        value = value << 6 | (at[i] & 0x3Fu);
    }
    if (value < least[len] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        return 0;
    }
    *code = value;
    return len;
}

static const char *plain_rule(bool plain)
{
    return plain ? " without control characters" : "";
}

int cwist_jq__check_text(const char *field, const char *text, size_t len, size_t most, bool plain)
{
    if (len > most) {
        return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                              "%s has %zu bytes; allowed: up to %zu bytes of UTF-8%s", field, len,
                              most, plain_rule(plain));
    }
    for (size_t i = 0; i < len;) {
        uint32_t code = 0;
        size_t step = utf8_next((const unsigned char *)text + i, len - i, &code);
        if (step == 0) {
            return cwist_jq__fail(
                CWIST_ERROR_INVALID_PARAM,
                "%s is not UTF-8 at byte %zu; allowed: up to %zu bytes of UTF-8%s", field, i, most,
                plain_rule(plain));
        }
        if (plain && (code < 0x20 || (code >= 0x7F && code < 0xA0))) {
            return cwist_jq__fail(CWIST_ERROR_INVALID_PARAM,
                                  "%s has the control character U+%04X at byte %zu; allowed: up to "
                                  "%zu bytes of UTF-8 without control characters",
                                  field, (unsigned)code, i, most);
        }
        i += step;
    }
    return CWIST_SUCCESS;
}
