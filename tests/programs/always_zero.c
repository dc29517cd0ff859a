// build: -shared -fPIC
// A preload that answers 0 to every sync call, as suppressors do that ask nobody: a mutant, so that a test of
// exactness can show that it would notice.
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
