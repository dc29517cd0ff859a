// append_loop FILE COUNT BYTES EVERY OUT: writes BYTES bytes COUNT times to the end of FILE, with fsync after each EVERY
// writes and at the end; the time of all that in nanoseconds goes to OUT. Says `done` when it is durable.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void must(int is_good, const char *what) {
    if (!is_good) {
        perror(what);
        exit(1);
    }
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(file >= 0, argv[1]);
    long count = atol(argv[2]), every = atol(argv[4]);
    size_t bytes = (size_t)atol(argv[3]);
    char *data = malloc(bytes);
    must(data != NULL, "malloc");
    for (size_t i = 0; i < bytes; i++) data[i] = (char)rand();  // nothing that packs well
    long long began = now();
    for (long i = 1; i <= count; i++) {
        must(write(file, data, bytes) == (ssize_t)bytes, "write");
        if (i % every == 0) must(fsync(file) == 0, "fsync");
    }
    must(fsync(file) == 0, "fsync");
    long long took = now() - began;
    FILE *out = fopen(argv[5], "w");
    must(out != NULL, argv[5]);
    fprintf(out, "%lld\n", took);
    must(fclose(out) == 0, argv[5]);
    puts("done");
    return 0;
}
