/* Error values, codes and texts. */
#include "core/internal.h"
#include "harness.h"

static void a_new_error_of_the_contract_is_zero(void)
{
    cwist_error_t error = make_error(CWIST_ERR_INT16);
    CHECK_INT(CWIST_ERR_INT16, error.errtype);
    CHECK_INT(0, error.error.err_i16);
    CHECK(cwist_error_is_ok(&error));
    cwist_error_dispose(&error);
    cwist_error_dispose(NULL);
}

static void the_kind_says_which_member_counts(void)
{
    cwist_error_t error = make_error(CWIST_ERR_INT64);
    error.error.err_i16 = 1;
    CHECK(cwist_error_is_ok(&error));
    error.error.err_i64 = -1;
    CHECK(!cwist_error_is_ok(&error));
    CHECK(!cwist_error_is_ok(NULL));
    CHECK_INT(CWIST_FAILURE, cwist_job_error_code(&error));
    CHECK_INT(CWIST_FAILURE, cwist_job_error_code(NULL));
}

static void every_code_has_its_name(void)
{
    CHECK_STR("CWIST_SUCCESS", cwist_job_error_name(0));
    CHECK_STR("CWIST_ERROR_TIMEOUT", cwist_job_error_name(-6));
    CHECK_STR("CWIST_ERROR_LEASE_LOST", cwist_job_error_name(-21));
    CHECK_STR("CWIST_ERROR_INTERRUPTED", cwist_job_error_name(-29));
    CHECK_STR("unknown code", cwist_job_error_name(-1000));
}

static void a_text_is_one_clean_line_that_fits(void)
{
    char longest[2000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';

    CHECK_STR("", cwist_job_last_error());
    (void)cwist_jq__fail(CWIST_ERROR_IO, "a\r\nb%c", '\x1b');
    CHECK_STR("a  b ", cwist_job_last_error());
    (void)cwist_jq__fail(CWIST_ERROR_IO, "%s", longest);
    CHECK_INT(511, strlen(cwist_job_last_error()));
    cwist_jq__error_prefix("ack: ");
    CHECK(strncmp(cwist_job_last_error(), "ack: xxx", 8) == 0);
}

static void a_cut_text_ends_with_a_whole_character(void)
{
    char text[600];
    memset(text, 'x', sizeof text);
    memcpy(text + 510, "\xC3\xA9", 2); /* the cut falls between these two bytes */
    text[599] = '\0';
    (void)cwist_jq__fail(CWIST_ERROR_IO, "%s", text);
    CHECK_INT(510, strlen(cwist_job_last_error()));
}

TEST_MAIN({"a_new_error_of_the_contract_is_zero", a_new_error_of_the_contract_is_zero},
          {"the_kind_says_which_member_counts", the_kind_says_which_member_counts},
          {"every_code_has_its_name", every_code_has_its_name},
          {"a_text_is_one_clean_line_that_fits", a_text_is_one_clean_line_that_fits},
          {"a_cut_text_ends_with_a_whole_character", a_cut_text_ends_with_a_whole_character})
