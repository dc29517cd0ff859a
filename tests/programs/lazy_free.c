// Writes 64 MiB, gives them back by MADV_FREE, then says so, and keeps 1 MiB of malloc's until its input ends.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
    size_t size = 64 << 20;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 1;
    memset(pages, 1, size);
    if (madvise(pages, size, MADV_FREE) != 0)
        return 2;
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    puts("given back");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    free(block);
    return 0;
}
