// build: -ldl
// Opens the library argv[1] for itself alone (RTLD_LOCAL) and lets it set up two rings, or submit argv[2] operations.
// Prints what liburing returned; exit 3: no io_uring here.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *plugin = argc >= 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*set_up_rings)(void) = (int (*)(void))dlsym(plugin, "set_up_rings");
    int (*submit)(int) = (int (*)(int))dlsym(plugin, "submit");
    int result = argc > 2 ? submit(atoi(argv[2])) : set_up_rings();
    printf("%d\n", result);
    return result == -EPERM || result == -ENOSYS ? 3 : result != 0;
}
