// build: musl-gcc -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu
// own_filter, with musl.
#include "own_filter.c"
