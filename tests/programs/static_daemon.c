// build: -static
// daemonize, where no preload can reach it.
#include "daemonize.c"
