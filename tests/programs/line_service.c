// A server that makes each line durable, and its load. ADDRESS is a TCP port of 127.0.0.1 or the path of a socket.
// serve ADDRESS FILE [DIES]: each byte received is a line in FILE and an fsync, and is answered by the number of
// fsyncs so far; the server exits at line number DIES. daemon ADDRESS FILE: the same, from a process whose
// parents have exited, with its pid in ./pid. load ADDRESS N: N lines, one after the other.
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int bound(const char *address, int (*attach)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int port = atoi(address), one = 1;
    int fd = socket(port != 0 ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    in.sin_port = htons((unsigned short)port);
    strncpy(un.sun_path, address, sizeof un.sun_path - 1);
    // The load's connections linger in TIME_WAIT on the server's side.
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int result = port != 0 ? attach(fd, (struct sockaddr *)&in, sizeof in) : attach(fd, (struct sockaddr *)&un, sizeof un);
    if (result != 0)
        fail(address);
    return fd;
}

static void leave_parents(void)
{
    for (int i = 0; i < 2; i++) {
        if (fork() != 0)
            _exit(0);
        setsid();
    }
    FILE *pid = fopen("pid", "w");
    if (pid == NULL || fprintf(pid, "%d\n", getpid()) < 0 || fclose(pid) != 0)
        fail("pid");
}

static int serve(const char *address, const char *file, int dies, int is_daemon)
{
    int lines = open(file, O_WRONLY | O_CREAT | O_APPEND, 0644), listener = bound(address, bind), count = 0;
    if (lines < 0 || listen(listener, 8) != 0)
        fail(file);
    if (is_daemon)
        leave_parents();
    printf("listening on %s\n", address);
    fflush(stdout);
    for (int client; (client = accept(listener, NULL, NULL)) >= 0; close(client)) {
        for (char byte; read(client, &byte, 1) == 1;) {
            if (count + 1 == dies) {
                fprintf(stderr, "no strength left for line %d\n", dies);
                return 3;
            }
            if (write(lines, "line\n", 5) != 5 || fsync(lines) != 0)
                fail(file);
            count++;
            if (write(client, &count, sizeof count) != sizeof count)
                break;
        }
    }
    fail("accept");
    return 1;
}

static int load(const char *address, int n)
{
    struct timespec began, ended;
    int server = bound(address, connect), first = 0, last = 0;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int i = 0; i < n; i++) {
        if (write(server, "x", 1) != 1 || read(server, &last, sizeof last) != sizeof last)
            fail("the server is gone");
        if (i == 0)
            first = last - 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    printf("%d done in %.6f s, %d syncs\n", n, seconds, last - first);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "load") == 0)
        return load(argv[2], atoi(argv[3]));
    if (argc >= 4 && strcmp(argv[1], "serve") == 0)
        return serve(argv[2], argv[3], argc > 4 ? atoi(argv[4]) : 0, 0);
    if (argc == 4 && strcmp(argv[1], "daemon") == 0)
        return serve(argv[2], argv[3], 0, 1);
    return 2;
}
