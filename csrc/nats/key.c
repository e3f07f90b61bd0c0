/*
 * Dedupe keys. A job with a key stands on a subject of its own, made of the key, and the server
 * stores a message there only when the queue has none: neither there nor on the subject where the
 * job waits for its time, which differs in the first token alone.
 */
#include <string.h>

#include "nats/jetstream.h"

#define KEYED ".k."

static bool is_plain(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *cwist_jq__key_subject(const cwist_jq__queue *queue, const char *key)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *jobs = cwist_jq__nats_queue_of(queue)->jobs;
    size_t head = strlen(jobs);
    char *subject = cwist_jq__alloc(head + sizeof KEYED + strlen(key) * 3);
    size_t used = head + sizeof KEYED - 1;

    if (subject == NULL) {
        return NULL;
    }
    memcpy(subject, jobs, head);
    memcpy(subject + head, KEYED, sizeof KEYED - 1);
    for (const unsigned char *at = (const unsigned char *)key; *at != '\0'; at++) {
        if (is_plain(*at)) {
            subject[used++] = (char)*at;
        } else {
            subject[used++] = '=';
            subject[used++] = digits[*at >> 4];
            subject[used++] = digits[*at & 15];
        }
    }
    subject[used] = '\0';
    return subject;
}

const char *cwist_jq__key_token(const cwist_jq__queue *queue, const char *subject)
{
    const char *jobs = cwist_jq__nats_queue_of(queue)->jobs;
    size_t head = strlen(jobs);
    bool keyed = subject != NULL && strncmp(subject, jobs, head) == 0 &&
                 strncmp(subject + head, KEYED, sizeof KEYED - 1) == 0;

    return keyed ? subject + head + sizeof KEYED - 1 : NULL;
}

size_t cwist_jq__key_read(char *key, const char *token)
{
    size_t len = 0;

    for (const char *at = token; *at != '\0' && len < CWIST_JQ_KEY_MAX; at++) {
        int high = *at == '=' ? digit_of(at[1]) : -1;
        int low = high >= 0 ? digit_of(at[2]) : -1;
        if (low >= 0) {
            key[len++] = (char)(high << 4 | low);
            at += 2;
        } else if (is_plain((unsigned char)*at)) {
            key[len++] = *at;
        } else {
            return 0; /* another program's subject */
        }
    }
    key[len] = '\0';
    return len;
}
