/* A Lua script as it is built into the library. The tables are made by csrc/tools/embed_lua.py. */
#ifndef CWIST_JQ_REDIS_SCRIPT_H
#define CWIST_JQ_REDIS_SCRIPT_H

#include <stddef.h>

typedef struct cwist_jq__redis_script {
    const char *name;
    unsigned keys;
    const unsigned char *text;
    size_t len;
    char sha1[41];
} cwist_jq__redis_script;

#endif
