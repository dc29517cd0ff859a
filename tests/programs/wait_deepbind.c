// build: -ldl
// Loads libstdc++ with RTLD_DEEPBIND, and with the argument `namespace` also libm in a namespace of its own, whose C
// library is a second one. Then as wait.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#define main wait_for_input
#include "wait.c"
#undef main

int main(int argc, char **argv)
{
    (void)argv;
    int loaded = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_DEEPBIND) != NULL;
    if (argc > 1)
        loaded = loaded && dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW) != NULL;
    if (!loaded) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return wait_for_input();
}
