/* Dead letters: the words for why a job is one, and the line of log that tells it. */
#include "core/backend.h"

const char *cwist_jq__cause_name(cwist_jq__cause cause)
{
    switch (cause) {
    case CWIST_JQ_CAUSE_NACKED:
        return "nacked";
    case CWIST_JQ_CAUSE_LEASE_EXPIRED:
        return "lease-expired";
    case CWIST_JQ_CAUSE_MALFORMED:
        return "malformed";
    case CWIST_JQ_CAUSE_REJECTED:
        return "rejected";
    }
    return "unknown";
}

void cwist_jq__log_dead(cwist_jq__queue *queue, int level, cwist_jq__cause cause,
                        cwist_jq__job *const *jobs, size_t count, const int *codes)
{
    const cwist_jq__job *first = NULL;
    size_t others = 0;

    for (size_t i = 0; i < count; i++) {
        if (codes[i] == CWIST_SUCCESS) {
            others += first != NULL;
            first = first != NULL ? first : jobs[i];
        }
    }
    if (first == NULL) {
        return;
    }
    if (others != 0) {
        cwist_jq__log(queue->conn, level, "queue %s: job %s and %zu others are dead (%s)",
                      queue->name, first->id, others, cwist_jq__cause_name(cause));
        return;
    }
    cwist_jq__log(queue->conn, level, "queue %s: job %s is dead after %u deliveries (%s%s%s)",
                  queue->name, first->id, first->attempts, cwist_jq__cause_name(cause),
                  first->malformed != NULL ? ": " : "",
                  first->malformed != NULL ? first->malformed : "");
}
