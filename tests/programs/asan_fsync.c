// build: -fsanitize=address
// fsync_once, under a runtime that insists on coming first among the libraries.
#include "fsync_once.c"

// Its leak check cannot work below a tracer, and strace is the judge of these programs.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
