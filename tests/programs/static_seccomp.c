// build: -static
// Prints how many seccomp filters lie beneath it.
#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if (!strncmp(line, "Seccomp", 7))
            fputs(line, stdout);
    }
    return status ? 0 : 1;
}
