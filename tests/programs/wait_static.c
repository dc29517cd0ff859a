// build: -static
#include "wait.c"
