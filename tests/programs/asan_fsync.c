// build: -fsanitize=address
// fsync_once, with a runtime that has to be the first library.
#include "fsync_once.c"

// Its leak check does not work under a tracer, and the tests run these programs under strace.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
