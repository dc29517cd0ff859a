// Counts SIGINT: prints "ready", waits until its input ends, prints the count.
#define _DEFAULT_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t count;

static void handler(int signal)
{
    (void)signal;
    count++;
}

int main(void)
{
    char byte;
    ssize_t got;
    struct sigaction action = {.sa_handler = handler};
    if (sigaction(SIGINT, &action, NULL) != 0)
        return 2;
    puts("ready");
    fflush(stdout);
    do
        got = read(0, &byte, 1);
    while (got > 0 || (got < 0 && errno == EINTR));
    printf("%d\n", (int)count);
    return 0;
}
