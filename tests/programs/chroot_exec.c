// argv: DIRECTORY COMMAND… Changes its root to DIRECTORY (root only), then execs COMMAND as found there.
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3 || chroot(argv[1]) != 0 || chdir("/") != 0) {
        perror("chroot");
        return 2;
    }
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
