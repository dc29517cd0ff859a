// build: musl-gcc -idirafter /usr/include -idirafter /usr/include/MULTIARCH -pthread
// call_sequences, with musl.
#include "call_sequences.c"
