// build: -shared -fPIC
// A library that complains about MALLOC_CONF as jemalloc does about an option that it does not have.
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void complain(void)
{
    static const char text[] = "<jemalloc>: Invalid conf pair: narenas:2\n";
    if (getenv("MALLOC_CONF") && write(2, text, sizeof text - 1) < 0)
        _exit(1);
}
