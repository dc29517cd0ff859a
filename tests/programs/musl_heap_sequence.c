// build: musl-gcc
// heap_sequence, with musl.
#include "heap_sequence.c"
