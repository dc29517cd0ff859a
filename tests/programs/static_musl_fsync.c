// build: musl-gcc -static
// fsync_once, static, with the other C library.
#include "fsync_once.c"
