// argv: HOW PROGRAM ARGUMENT… Starts it by execveat, fexecve, syscall (SYS_execve by number) or failing, which first
// execs a static file that is not executable and a missing one, and then prints its own count of seccomp filters.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static int print_filters(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Seccomp_filters:", 16) == 0)
            fputs(line, stdout);
    return status ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "failing") == 0) {
        int missing = execve("/nowhere/at/all", argv + 2, environ) == -1 && errno == ENOENT;
        int denied = execve(argv[2], argv + 2, environ) == -1 && errno == EACCES;
        printf("%d %d\n", missing, denied);
        return print_filters();
    }
    int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (strcmp(argv[1], "execveat") == 0)
        syscall(SYS_execveat, fd, "", argv + 2, environ, AT_EMPTY_PATH);
    else if (strcmp(argv[1], "fexecve") == 0)
        fexecve(fd, argv + 2, environ);
    else if (strcmp(argv[1], "syscall") == 0)
        syscall(SYS_execve, argv[2], argv + 2, environ);
    perror(argv[2]);
    return 127;
}
