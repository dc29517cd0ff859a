// argv: N FILE [PROCESSES]. Writes a byte and fsyncs, N times, in each of PROCESSES processes, one after another;
// prints the errno of each call, 0 for success, on one line. At the end it syncs what cannot be synced: a pipe, a closed
// descriptor.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void told(int result)
{
    printf("%d ", result ? errno : 0);
}

static int synced(int times, const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0644);
    for (int i = 0; i < times; i++) {
        if (write(fd, "x", 1) != 1)
            return 1;
        told(fsync(fd));
    }
    return fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int processes = argc > 3 ? atoi(argv[3]) : 1;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(synced(atoi(argv[1]), argv[2]));
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    told(fsync(ends[1]));
    close(ends[1]);
    told(fsync(ends[1]));
    printf("\n");
    return 0;
}
