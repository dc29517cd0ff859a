// build: -static
// setgid_helper, static: no preload can reach it, setgid or not.
#include "setgid_helper.c"
