// build: -static
// fsync_once, where no preload can reach it.
#include "fsync_once.c"
