// Leaks 32 MiB in each of two functions whose symbols are those that compilers of C++ and Rust write.
#include <stdio.h>
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) void of_cpp(int count) __asm__("_ZN7storage5CacheIcE4growEi");
__attribute__((noinline)) void of_rust(int count) __asm__("_ZN7storage5grown17h0123456789abcdefE");

void of_cpp(int count)
{
    for (int i = 0; i < count; i++)
        kept = malloc(4096);
}

void of_rust(int count)
{
    for (int i = 0; i < count; i++)
        kept = malloc(4096);
}

int main(void)
{
    of_cpp(8192);
    of_rust(8192);
    puts("grown");
    return 0;
}
