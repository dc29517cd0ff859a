// build: -shared -fPIC
// A malloc that gives each block of 123456 bytes an address above 2^48, where nothing lies: the kernel gives such
// addresses to who asks for them (52 bits on arm64, 57 on x86-64). All other blocks are glibc's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

enum { SIZE = 123456 };

void *__libc_malloc(size_t size);
void __libc_free(void *block);

static size_t (*usable_beneath)(void *block);

__attribute__((constructor)) static void find(void)
{
    usable_beneath = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    if (usable_beneath == NULL)
        abort();
}

static int is_high(const void *block)
{
    return (uintptr_t)block >> 48 != 0;
}

void *malloc(size_t size)
{
    static uintptr_t given = (uintptr_t)1 << 50;
    if (size == SIZE)
        return (void *)__atomic_add_fetch(&given, 1 << 20, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}

void free(void *block)
{
    if (!is_high(block))
        __libc_free(block);
}

size_t malloc_usable_size(void *block)
{
    return is_high(block) ? SIZE : usable_beneath(block);
}
