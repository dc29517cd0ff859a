// build: -m32
// fsync_once, as a 32-bit program.
#include "fsync_once.c"
