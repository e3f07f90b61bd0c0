/*
 * The log: a ring that Python empties when it is inside a call anyway.
 *
 * No call into Python is made from here: a thread of the library may log while the interpreter is
 * shutting down. One ring serves all connections, so nothing has to outlive a connection.
 */

#define LOG_LINES 64
#define LOG_TEXT 512

typedef struct log_line {
    int level;
    char text[LOG_TEXT];
} log_line;

static cwist_jq__mutex log_mutex = CWIST_JQ_MUTEX_INIT;
static log_line log_ring[LOG_LINES];
static unsigned log_first;
static unsigned log_dropped;
static atomic_uint log_count;

/* Copies text, cut at the start of a character of UTF-8 when it is too long. */
static void copy_text(char *to, size_t size, const char *text)
{
    size_t len = strlen(text);

    if (len >= size) {
        len = size - 1;
        while (len > 0 && ((unsigned char)text[len] & 0xC0u) == 0x80u) {
            len--;
        }
    }
    memcpy(to, text, len);
    to[len] = '\0';
}

static void log_push(void *context, int level, const char *text)
{
    (void)context;
    cwist_jq__lock(&log_mutex);
    unsigned count = atomic_load(&log_count);
    if (count < LOG_LINES) {
        log_line *line = &log_ring[(log_first + count) % LOG_LINES];
        line->level = level;
        copy_text(line->text, sizeof line->text, text);
        atomic_store(&log_count, count + 1);
    } else {
        log_dropped++;
    }
    cwist_jq__unlock(&log_mutex);
}

static bool cwist_py_log_waiting(void)
{
    return atomic_load_explicit(&log_count, memory_order_relaxed) != 0;
}

/* SUCCESS becomes LOGGED when there are lines for Python to fetch. */
static int tell(int code)
{
    return code == CWIST_SUCCESS && cwist_py_log_waiting() ? CWIST_PY_LOGGED : code;
}

/* Takes the oldest line. Returns its level, 0 when there is none. */
static int cwist_py_log_take(char *text, size_t size)
{
    int level = 0;

    cwist_jq__lock(&log_mutex);
    unsigned count = atomic_load(&log_count);
    if (count != 0) {
        level = log_ring[log_first].level;
        copy_text(text, size, log_ring[log_first].text);
        log_first = (log_first + 1) % LOG_LINES;
        atomic_store(&log_count, count - 1);
    } else if (log_dropped != 0) {
        level = CWIST_JOB_LOG_WARNING;
        (void)snprintf(text, size, "%u lines of log were dropped", log_dropped);
        log_dropped = 0;
    }
    cwist_jq__unlock(&log_mutex);
    return level;
}

/* For a forked child: the lock may have been held, and the lines are the parent's to log. */
static void cwist_py_log_after_fork(void)
{
    cwist_jq__mutex_init(&log_mutex);
    atomic_store(&log_count, 0);
    log_dropped = 0;
}
