// build: musl-gcc -idirafter /usr/include -idirafter /usr/include/MULTIARCH
// own_filter, with musl.
#include "own_filter.c"
