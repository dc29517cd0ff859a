// build: -static
// daemonize, static: no preload can reach it.
#include "daemonize.c"
