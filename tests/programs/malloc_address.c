// build: -fno-pie -no-pie
// An executable at a fixed address that takes the address of malloc: its symbol table then gives malloc an address
// in the executable, although a library serves it. Prints malloc's address.
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *(*volatile allocate)(size_t) = malloc;
    void *block = allocate(16);
    printf("%p\n", (void *)allocate);
    free(block);
    return block == NULL;
}
