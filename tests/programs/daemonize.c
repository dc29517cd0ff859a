// argv: GO FILE DONE (absolute paths). Becomes a daemon whose parent exits at once; it waits up to 30 s for GO to
// appear, fsyncs FILE, then creates DONE with fsync's result in it.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const struct timespec tick = {.tv_nsec = 5000000};
    if (argc != 4 || daemon(0, 0) != 0)
        return 2;
    for (int i = 0; access(argv[1], F_OK) != 0; i++) {
        if (i == 6000)
            return 1;
        nanosleep(&tick, NULL);
    }
    int fd = open(argv[2], O_RDWR | O_CREAT, 0644);
    int result = fsync(fd);
    // Renamed into place, so that whoever sees DONE sees all of it.
    char unfinished[4096];
    if (snprintf(unfinished, sizeof unfinished, "%s.part", argv[3]) >= (int)sizeof unfinished)
        return 1;
    FILE *done = fopen(unfinished, "w");
    if (done == NULL || fprintf(done, "%d\n", result) < 0 || fclose(done) != 0)
        return 1;
    return rename(unfinished, argv[3]) != 0;
}
