/* glibc 2.34 gave the function that calls main a new version, which the linker
 * takes where it builds, and older ones refuse the program. The oldest version is
 * there in all: -Wl,--wrap=__libc_start_main leads to it. */
#include "arch.h"

typedef int main_function(int, char **, char **);

extern int oldest(main_function *, int, char **, void (*)(void), void (*)(void),
		  void (*)(void), void *);
__asm__(".symver oldest,__libc_start_main@" ARCH_GLIBC);

int __wrap___libc_start_main(main_function *, int, char **, void (*)(void),
			     void (*)(void), void (*)(void), void *);

int __wrap___libc_start_main(main_function *main, int argc, char **argv,
			     void (*init)(void), void (*fini)(void),
			     void (*loader_fini)(void), void *stack_end)
{
	return oldest(main, argc, argv, init, fini, loader_fini, stack_end);
}
