/* The version of the library, written once: CMake, pkg-config and Python read it here. */
#ifndef CWIST_JQ_VERSION_H
#define CWIST_JQ_VERSION_H

#define CWIST_JQ_VERSION_MAJOR 0
#define CWIST_JQ_VERSION_MINOR 1
#define CWIST_JQ_VERSION_PATCH 0

#endif
