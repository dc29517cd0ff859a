// build: -ldl
// Loads a library with RTLD_DEEPBIND (what some name service and plugin loaders do), then fsyncs argv[1].
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) != 0) {
        perror("deepbind");
        return 1;
    }
    return 0;
}
