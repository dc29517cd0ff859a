// build: musl-gcc
// fsync_once, with the other libc.
#include "fsync_once.c"
