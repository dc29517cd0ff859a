/* Allocates in a function whose unwind table has an expression without an end: a jump to itself. */
#include <stdlib.h>

__attribute__((noinline)) static void *endless(size_t size)
{
	/* DW_CFA_def_cfa_expression of 3 bytes: DW_OP_skip -3 */
	__asm__ volatile(".cfi_escape 0x0f, 0x03, 0x2f, 0xfd, 0xff");
	void *volatile block = malloc(size);
	return block;
}

int main(void)
{
	return endless((size_t)64 << 20) == NULL;
}
