// argv: COMMAND… Runs it by posix_spawn with an empty environment, and passes its exit code on.
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
    char *nothing[] = {NULL};
    pid_t child;
    int status = 0;
    if (argc < 2)
        return 2;
    int error = posix_spawn(&child, argv[1], NULL, NULL, argv + 1, nothing);
    if (error != 0) {
        fprintf(stderr, "posix_spawn: %s\n", strerror(error));
        return 127;
    }
    if (waitpid(child, &status, 0) != child)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
