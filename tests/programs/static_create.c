// build: -static
// argv: FILE. Creates it with O_EXCL and O_SYNC, for nobody to open for writing again, and writes to it; prints the
// errno or 0, and how many more descriptors it has afterwards. Static: no preload can reach it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    int before = descriptors();
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL | O_SYNC, 0400);
    int error = fd < 0 ? errno : write(fd, "x", 1) != 1;
    printf("%d %d\n", error, descriptors() - before);
    return 0;
}
