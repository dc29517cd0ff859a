// build: musl-gcc
// first_dlerror, with the other libc.
#include "first_dlerror.c"
