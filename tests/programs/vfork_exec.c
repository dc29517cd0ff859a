// argv: COMMAND… Runs it by vfork and execv, and passes its exit code on; 127 when execv failed.
#define _DEFAULT_SOURCE
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = 0;
    if (argc < 2)
        return 2;
    pid_t child = vfork();
    if (child == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
