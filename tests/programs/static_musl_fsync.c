// build: musl-gcc -static
// fsync_once, static, with musl.
#include "fsync_once.c"
