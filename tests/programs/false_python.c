// build: -rdynamic
// argv: MINOR WHERE. Has the names of CPython 3.MINOR; its thread lies at WHERE: nowhere, text, or a loop of frames.
// Renames a file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long Py_Version;
char _PyRuntime[4096], PyCode_Type[64], PyUnicode_Type[64], PyBytes_Type[64];
static void *thread;

void *PyGILState_GetThisThreadState(void) {
    return thread;
}


static void begin(int argc, char **argv) {
    Py_Version = 0x03000000ul | (unsigned long)atol(argc > 1 ? argv[1] : "11") << 16;
    memcpy(_PyRuntime, "xdebugpy", 8);
}
__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **) = begin;

int main(int argc, char **argv) {
    static void *frames[64];
    const char *where = argc > 2 ? argv[2] : "";
    for (int i = 0; i < 64; i++) frames[i] = frames;
    thread = strcmp(where, "nowhere") == 0 ? (void *)8
             : strcmp(where, "text") == 0  ? (void *)main
                                           : (void *)frames;
    FILE *file = fopen("new", "w");
    if (!file || fputs("x", file) < 0 || fclose(file) || rename("new", "old")) {
        perror("old");
        return 1;
    }
    return 0;
}
