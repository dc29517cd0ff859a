/* What belongs to arm64: see prim.h, which gives it to all others. */
#ifndef REFIT_ARCH_H
#define REFIT_ARCH_H

#include <elf.h>
#include <stdint.h>

/* Of an executable whose programs refit's library fits (elf(5), ld.so(8)). */
#define ARCH_MACHINE EM_AARCH64
#define ARCH_GLIBC_LOADER "ld-linux-aarch64.so.1"
#define ARCH_MUSL_LOADER "ld-musl-aarch64.so.1"

/* Of its system calls, as a filter sees them (seccomp(2), linux/audit.h). */
#define ARCH_AUDIT AUDIT_ARCH_AARCH64

/* The version under which glibc's first release for it has its functions. */
#define ARCH_GLIBC "GLIBC_2.17"

/* clock_gettime of the vDSO (vdso(7)). */
#define ARCH_VDSO_CLOCK "__kernel_clock_gettime"

/* Returns what the kernel returned: -errno on failure (syscall(2)). */
static inline long arch_syscall(long nr, long a, long b, long c, long d, long e,
				long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

/* The address of this instruction, the stack pointer and the frame pointer. Who
 * called is on the stack: the function calls others, and has stored x30. */
#define arch_place(instruction, stack, frame)                                  \
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29"              \
			 : "=r"(instruction), "=r"(stack), "=r"(frame))

/* So that neither a signal nor a switch to another process comes between: either
 * makes the store fail. One instruction, stadd, came with ARMv8.1 only. */
static inline void arch_add_one(uint64_t *n)
{
	uint64_t value;
	uint32_t failed;
	__asm__("1:	ldxr %0, %2\n"
		"	add %0, %0, #1\n"
		"	stxr %w1, %0, %2\n"
		"	cbnz %w1, 1b"
		: "=&r"(value), "=&r"(failed), "+Q"(*n));
}

/* In a loop that waits. */
static inline void arch_pause(void)
{
	__asm__ volatile("yield");
}

/* Where a program without a C library begins: `function` gets the stack as the
 * kernel leaves it, which is aligned. */
#define ARCH_ENTRY(function)                                                   \
	__asm__(".globl _start\n"                                              \
		"_start:\n"                                                    \
		"	mov x29, xzr\n"                                        \
		"	mov x30, xzr\n"                                        \
		"	mov x0, sp\n"                                          \
		"	bl " #function "\n")

#endif
