/* What the preload takes from the kernel and the C library, in one place.
 *
 * System calls are made directly: an intercepted call must never come back to
 * an intercepted call, and a libc wrapper may be replaced by another preload.
 * What differs between architectures is in arch/NAME/arch.h, and in stubs.S beside it.
 */
#ifndef REFIT_PRIM_H
#define REFIT_PRIM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "arch.h"

#define EXPORT __attribute__((visibility("default")))
/* Of a variable that another file of the library defines: reached without the
 * global offset table. */
#define HIDDEN __attribute__((visibility("hidden")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* glibc 2.34 moved functions of libdl and libpthread into libc under a new version;
 * the oldest one is there in every glibc, and musl does not look at versions. */
#define PRIM_OLDEST(function)                                                  \
	__asm__(".symver " #function "," #function "@" ARCH_GLIBC)

/* Returns what the kernel returned: -errno on failure. */
#define prim_syscall6(nr, a, b, c, d, e, f)                                    \
	arch_syscall((nr), (a), (b), (c), (d), (e), (f))

#define prim_syscall(nr, a, b, c, d)                                           \
	arch_syscall((nr), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* The kernel has errors up to 4095 (MAX_ERRNO, linux/err.h). */
static inline int prim_failed(long result)
{
	return (unsigned long)result > -4096ul;
}

/* A kernel result as a C result: errno is touched on failure only. */
static inline long prim_result(long result)
{
	if (UNLIKELY(prim_failed(result))) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

/* Where an unwinder begins: in the function that this stands in. */
struct prim_place {
	uint64_t instruction;
	uint64_t stack;
	uint64_t frame;
};

static inline __attribute__((always_inline)) struct prim_place prim_place(void)
{
	struct prim_place here;
	arch_place(here.instruction, here.stack, here.frame);
	return here;
}

static inline int prim_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* The rest of text after prefix, or NULL. */
static inline const char *prim_after(const char *text, const char *prefix)
{
	while (*prefix) {
		if (*text++ != *prefix++) {
			return NULL;
		}
	}
	return text;
}

static inline size_t prim_length(const char *text)
{
	size_t n = 0;
	while (text[n]) {
		n++;
	}
	return n;
}

/* Copies at most size - 1 characters and ends with NUL; returns the end. */
static inline char *prim_copy(char *to, const char *from, size_t size)
{
	while (size > 1 && *from) {
		*to++ = *from++;
		size--;
	}
	*to = '\0';
	return to;
}

static inline const char *prim_basename(const char *path)
{
	const char *name = path;
	for (; *path; path++) {
		if (*path == '/') {
			name = path + 1;
		}
	}
	return name;
}

/* The value of NAME= in an environment, or NULL; name ends with '='. */
static inline const char *prim_env(char *const *envp, const char *name)
{
	for (; envp && *envp; envp++) {
		const char *value = prim_after(*envp, name);
		if (value) {
			return value;
		}
	}
	return NULL;
}

/* The kernel's own function in the vDSO (vdso(7)): clock_gettime of the C library may
 * be another preload's, which bends the program's time. NULL before the constructor,
 * and where there is none. */
extern HIDDEN int (*prim_vdso_clock)(clockid_t, struct timespec *);

/* CLOCK_MONOTONIC in nanoseconds. Where the vDSO cannot read the clock it is a
 * system call. */
static inline uint64_t prim_clock_ns(void)
{
	struct timespec t;
	if (!LIKELY(prim_vdso_clock != NULL) ||
	    prim_vdso_clock(CLOCK_MONOTONIC, &t) != 0) {
		prim_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t, 0, 0);
	}
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
