// argv: N FILE. Forks N children, one after another; each fsyncs FILE once.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int fd = open(argv[2], O_RDWR | O_CREAT, 0644);
    for (int i = atoi(argv[1]); i > 0; i--) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(fsync(fd) != 0);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            perror("fork_storm");
            return 1;
        }
    }
    return 0;
}
