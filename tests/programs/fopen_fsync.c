// fsyncs argv[1], opened by fopen: the open happens inside the C library, where no preload sees it.
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    FILE *stream = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (stream == NULL || fputs("x", stream) == EOF || fflush(stream) != 0 || fsync(fileno(stream)) != 0) {
        perror("fopen_fsync");
        return 1;
    }
    return 0;
}
