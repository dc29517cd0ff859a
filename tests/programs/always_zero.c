// build: -shared -fPIC
// A preload that returns 0 from every sync call without a probe: a mutant, with which the conformance test shows that
// it notices wrong answers.
#include <stddef.h>

#define ANSWER_ZERO(name, ...)                                                                                     \
    int name(__VA_ARGS__);                                                                                         \
    int name(__VA_ARGS__)                                                                                          \
    {                                                                                                              \
        return 0;                                                                                                  \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
ANSWER_ZERO(fsync, int fd)
ANSWER_ZERO(fdatasync, int fd)
ANSWER_ZERO(syncfs, int fd)
ANSWER_ZERO(sync_file_range, int fd, long offset, long size, unsigned flags)
ANSWER_ZERO(msync, void *address, size_t size, int flags)
