// build: -m32 -static -pthread -D_FILE_OFFSET_BITS=64
// call_sequences, as a static program of 32 bits.
#include "call_sequences.c"
