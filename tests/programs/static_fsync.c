// build: -static
// fsync_once, static: no preload can reach it.
#include "fsync_once.c"
