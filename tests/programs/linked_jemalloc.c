// build: -Wl,--no-as-needed -l:libjemalloc.so.2
// Linked with an allocator, as Debian's redis-server is: its malloc is jemalloc's, without any preload.
#include <stdlib.h>

int main(void)
{
    free(malloc(1));
    return 0;
}
