// build: -static
// setgid_helper, where no preload could reach it anyway.
#include "setgid_helper.c"
