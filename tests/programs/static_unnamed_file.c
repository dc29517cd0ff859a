// build: -static
// unnamed_file as a static program.
#include "unnamed_file.c"
