// build: -ldl
// Prints what dlerror returns before the program has called the dynamic linker.
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    const char *error = dlerror();
    puts(error ? error : "none");
    return 0;
}
