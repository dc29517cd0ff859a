// build: musl-gcc
// heap_leak, with musl.
#include "heap_leak.c"
