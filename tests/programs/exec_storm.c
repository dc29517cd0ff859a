// argv: N COMMAND… Runs COMMAND N times, one after another, by fork and execvp. Exit 1 when one of them failed.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    for (int i = atoi(argv[1]); i > 0; i--) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            execvp(argv[2], argv + 2);
            _exit(127);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "exec_storm: status %#x\n", (unsigned)status);
            return 1;
        }
    }
    return 0;
}
