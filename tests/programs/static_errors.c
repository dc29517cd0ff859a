// build: -static
// fsync_errors, where no preload can reach it.
#include "fsync_errors.c"
