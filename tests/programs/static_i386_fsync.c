// build: -m32 -static
// fsync_once, as a 32-bit program that no preload can reach.
#include "fsync_once.c"
