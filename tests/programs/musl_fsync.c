// build: musl-gcc
// fsync_once, with musl.
#include "fsync_once.c"
