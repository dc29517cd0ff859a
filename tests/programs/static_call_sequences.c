// build: -static -pthread
// call_sequences, static: no preload can reach it.
#include "call_sequences.c"
