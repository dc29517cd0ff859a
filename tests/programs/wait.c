// Allocates, prints `ready`, waits for the end of its input.
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    // A compiler may leave out a block that nothing is done with: GCC 15 does.
    char *volatile block = malloc(100);
    if (block == NULL || puts("ready") == EOF || fflush(stdout) != 0)
        return 1;
    while (getchar() != EOF) {
    }
    free(block);
    return 0;
}
