/* What belongs to x86-64: see prim.h, which gives it to all others. */
#ifndef REFIT_ARCH_H
#define REFIT_ARCH_H

#include <elf.h>
#include <stdint.h>

/* Of an executable whose programs refit's library fits (elf(5), ld.so(8)). */
#define ARCH_MACHINE EM_X86_64
#define ARCH_GLIBC_LOADER "ld-linux-x86-64.so.2"
#define ARCH_MUSL_LOADER "ld-musl-x86_64.so.1"

/* Of its system calls, as a filter sees them (seccomp(2), linux/audit.h). */
#define ARCH_AUDIT AUDIT_ARCH_X86_64

/* The version under which glibc's first release for it has its functions. */
#define ARCH_GLIBC "GLIBC_2.2.5"

/* clock_gettime of the vDSO (vdso(7)). */
#define ARCH_VDSO_CLOCK "__vdso_clock_gettime"

/* Returns what the kernel returned: -errno on failure (syscall(2)). */
static inline long arch_syscall(long nr, long a, long b, long c, long d, long e,
				long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* The address of this instruction, the stack pointer and the frame pointer. */
#define arch_place(instruction, stack, frame)                                  \
	__asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2" \
			 : "=r"(instruction), "=r"(stack), "=r"(frame))

/* So that neither a signal nor a switch to another process comes between. */
static inline void arch_add_one(uint64_t *n)
{
	__asm__("incq %0" : "+m"(*n) : : "cc");
}

/* In a loop that waits. */
static inline void arch_pause(void)
{
	__builtin_ia32_pause();
}

/* Where a program without a C library begins: `function` gets the stack as the
 * kernel leaves it. */
#define ARCH_ENTRY(function)                                                   \
	__asm__(".globl _start\n"                                              \
		"_start:\n"                                                    \
		"	xorl %ebp, %ebp\n"                                     \
		"	movq %rsp, %rdi\n"                                     \
		"	andq $-16, %rsp\n"                                     \
		"	call " #function "\n")

#endif
