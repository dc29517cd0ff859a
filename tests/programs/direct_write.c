// O_DIRECT on argv[1], asked for by open and by F_SETFL. One line each: `how direct|buffered aligned=R misaligned=R`,
// where R is what a write of 4096 bytes from an aligned, and from a misaligned, buffer returned (or -errno).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static _Alignas(4096) char buffer[2 * 4096];

static long result_of(ssize_t result)
{
    return result < 0 ? -errno : result;
}

static void report(const char *how, int fd)
{
    const char *kind = fcntl(fd, F_GETFL) & O_DIRECT ? "direct" : "buffered";
    long aligned = result_of(pwrite(fd, buffer, 4096, 0));
    long misaligned = result_of(pwrite(fd, buffer + 1, 4096, 0));
    printf("%s %s aligned=%ld misaligned=%ld\n", how, kind, aligned, misaligned);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_DIRECT, 0644);
    if (fd < 0) {
        perror("O_DIRECT");
        return 3;
    }
    report("open", fd);
    fd = open(argv[1], O_RDWR);
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT) != 0)
        perror("F_SETFL");
    report("setfl", fd);
    return 0;
}
