// heap_sizes SIZE… COUNT: keeps so many blocks of each size.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[argc - 1]) : 0;
    for (int i = 1; i + 1 < argc; i++) {
        size_t size = strtoul(argv[i], NULL, 10);
        for (long block = 0; block < count; block++) {
            char *volatile kept = malloc(size);
            if (kept == NULL) {
                perror("heap_sizes");
                return 1;
            }
            memset(kept, 1, size);
        }
    }
    return 0;
}
