// build: musl-gcc
// first_dlerror, with musl.
#include "first_dlerror.c"
