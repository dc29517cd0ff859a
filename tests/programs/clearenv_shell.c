// argv: COMMAND. Clears its own environment, and runs COMMAND by system(3), then by popen(3); exits with 0 if both do.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 2 || clearenv() != 0 || system(argv[1]) != 0)
        return 1;
    FILE *output = popen(argv[1], "w");
    return output && pclose(output) == 0 ? 0 : 2;
}
