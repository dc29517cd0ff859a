// build: musl-gcc
#include "wait.c"
