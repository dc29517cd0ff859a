// build: -static
// fsync_errors, static: no preload can reach it.
#include "fsync_errors.c"
