// build: musl-gcc -idirafter /usr/include -idirafter /usr/include/MULTIARCH -static -pthread
// call_sequences, static, with musl.
#include "call_sequences.c"
