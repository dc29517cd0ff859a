// build: -ldl
// Prints what dlerror says before the program has asked the dynamic linker for anything.
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    const char *error = dlerror();
    puts(error ? error : "none");
    return 0;
}
