/* Requests to the JetStream API and what its replies mean. */
#include <stdio.h>
#include <string.h>

#include "nats/jetstream.h"

/* How long nobody may answer before that is taken for JetStream being off. */
#define STARTING_MS 1000
/* How long one try waits; a reply that is later is as good as lost. */
#define TRY_MS 2000

static const char jetstream_off[] =
    "JetStream is not enabled on this server or account; start it with -js";

int cwist_jq__answer_read(cwist_jq__answer *answer, natsMsg *message)
{
    memset(answer, 0, sizeof *answer);
    answer->message = message;
    answer->json.text = natsMsg_GetData(message);
    answer->json.len = (size_t)natsMsg_GetDataLength(message);

    cwist_jq__json error = cwist_jq__json_member(answer->json, "error");
    if (answer->json.text == NULL || answer->json.len < 2 || answer->json.text[0] != '{') {
        return cwist_jq__fail(CWIST_ERROR_PROTOCOL, "the server's reply is no JSON object");
    }
    if (error.text != NULL) {
        char words[160];
        cwist_jq__json_copy(cwist_jq__json_member(error, "description"), words, sizeof words);
        answer->http = cwist_jq__json_int(cwist_jq__json_member(error, "code"), 500);
        answer->error = cwist_jq__json_int(cwist_jq__json_member(error, "err_code"), answer->http);
        (void)snprintf(answer->text, sizeof answer->text, "%s (error %lld)", words,
                       (long long)answer->error);
    }
    return CWIST_SUCCESS;
}

void cwist_jq__answer_clear(cwist_jq__answer *answer)
{
    natsMsg_Destroy(answer->message);
    answer->message = NULL;
}

static bool is_off(int64_t error)
{
    return error == 10039 || error == 10076; /* not enabled for the account, on the server */
}

bool cwist_jq__answer_is_temporary(const cwist_jq__answer *answer)
{
    switch (answer->error) {
    case 10007: /* no quorum */
    case 10008: /* temporarily unavailable */
    case 10009: /* no leader */
    case 10049: /* no store: files of a stream that was just deleted are still being removed */
    case 10076: /* the system is down while it starts or stops */
        return true;
    default:
        return false;
    }
}

bool cwist_jq__answer_is_taken(const cwist_jq__answer *answer)
{
    /* The second while the message that is there is still being stored. */
    return answer->error == CWIST_JQ_ERR_WRONG_LAST || answer->error == 10164;
}

bool cwist_jq__answer_is_full(const cwist_jq__answer *answer)
{
    return answer->error == CWIST_JQ_ERR_STORE_FAILED &&
           strstr(answer->text, "maximum messages") != NULL;
}

int cwist_jq__answer_fail(const cwist_jq__answer *answer, const char *what)
{

    switch (answer->error) {
    case 10039:
    case 10076:
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED, "%s (the server said: %s)", jetstream_off,
                              answer->text);
    case 10058: /* another configuration under the name */
    case 10065: /* subjects overlap with another stream */
    case 10099: /* another consumer on a work queue */
    case 10100:
        return cwist_jq__fail(CWIST_ERROR_CONFLICT, "%s: %s", what, answer->text);
    default:
        return cwist_jq__fail(CWIST_ERROR_REFUSED, "%s: %s", what, answer->text);
    }
}

/* One try. SUCCESS with an answer, or a reason as of cwist_jq__request_send(). */
static int ask_once(cwist_jq__answer *answer, cwist_jq__nats *nats,
                    const cwist_jq__request *request, const cwist_jq__wait *wait)
{
    cwist_jq__link *link = NULL;
    natsMsg *reply = NULL;
    cwist_jq__wait one = {cwist_jq__earlier(wait->deadline, cwist_jq__after_ms(TRY_MS)),
                          wait->claim};
    int status = cwist_jq__link_get(&link, nats, wait);

    if (status != CWIST_SUCCESS) {
        return status;
    }
    status = cwist_jq__request_send(&reply, link, request, &one);
    if (status == CWIST_SUCCESS) {
        status = cwist_jq__answer_read(answer, reply);
    } else if (status == CWIST_JQ_LOST && !cwist_jq__passed(wait->deadline)) {
        cwist_jq__link_probe(link, wait->deadline);
    }
    cwist_jq__link_unref(link);
    return status;
}

/* The wait ended: says what the last try met. */
static int give_up(int status, int last, const cwist_jq__answer *answer, bool seen)
{
    if (status != CWIST_JQ_PENDING) {
        return status;
    }
    if (last == CWIST_JQ_PENDING) {
        return CWIST_ERROR_IO; /* the text of link_get stands */
    }
    if (last == CWIST_SUCCESS) {
        return cwist_jq__answer_fail(answer, "JetStream");
    }
    if (last == CWIST_JQ_NO_RESPONDERS && seen) {
        return cwist_jq__fail(CWIST_ERROR_IO, "JetStream does not answer; it may be starting");
    }
    if (last == CWIST_JQ_NO_RESPONDERS) {
        return cwist_jq__fail(CWIST_ERROR_UNSUPPORTED, "%s", jetstream_off);
    }
    return cwist_jq__fail(CWIST_ERROR_IO, "the server did not answer in time");
}

int cwist_jq__api(cwist_jq__answer *answer, cwist_jq__nats *nats, const char *subject,
                  const char *body, const cwist_jq__wait *wait)
{
    cwist_jq__request request = {subject, body, body != NULL ? strlen(body) : 0, NULL, 0};
    cwist_jq__backoff backoff = {0};
    uint64_t off_at = 0;

    memset(answer, 0, sizeof *answer);
    for (;;) {
        cwist_jq__answer_clear(answer);
        int last = ask_once(answer, nats, &request, wait);
        bool temporary = last == CWIST_SUCCESS && cwist_jq__answer_is_temporary(answer);
        if (last == CWIST_SUCCESS && !temporary) {
            atomic_store(&nats->jetstream_seen, true);
        }
        if ((last == CWIST_SUCCESS && !temporary) || last < 0) {
            return last;
        }
        bool seen = atomic_load(&nats->jetstream_seen);
        bool off = last == CWIST_JQ_NO_RESPONDERS || (temporary && is_off(answer->error));
        if (off && off_at == 0) {
            off_at = cwist_jq__after_ms(STARTING_MS);
        }
        int status = last == CWIST_JQ_PENDING ? last : cwist_jq__wait_backoff(wait, &backoff);
        if (status == CWIST_SUCCESS && off && !seen && cwist_jq__passed(off_at)) {
            status = CWIST_JQ_PENDING; /* it does not come: say so instead of waiting on */
        }
        if (status != CWIST_SUCCESS) {
            status = give_up(status, last, answer, seen);
            cwist_jq__answer_clear(answer);
            return status;
        }
    }
}
