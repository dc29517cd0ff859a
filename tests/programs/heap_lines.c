// build: gcc -O2 -g
// Leaks 32 MiB by functions that the compiler puts into main(). A comment names each line that a path has to lead through.
#include <stdlib.h>
#include <string.h>

static void *kept[8192];

static inline __attribute__((always_inline)) void *grab(size_t bytes)
{
    void *made = malloc(bytes); // line of grab
    memset(made, 1, bytes);
    return made;
}

static inline __attribute__((always_inline)) void leak(int at)
{
    kept[at] = grab(4096); // line of leak
}

int main(void)
{
    for (int i = 0; i < 8192; i++)
        leak(i); // line of main
    return kept[7] == NULL;
}
