// build: -ldl
// Opens the library argv[1] for itself alone (RTLD_LOCAL) and lets it set up two rings. Prints what liburing
// returned; exit 3: no io_uring here.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*set_up_rings)(void) = (int (*)(void))dlsym(plugin, "set_up_rings");
    int result = set_up_rings();
    printf("%d\n", result);
    return result == -EPERM || result == -ENOSYS ? 3 : result != 0;
}
