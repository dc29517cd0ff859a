#include "slot.h"

#include "own_seccomp.h"

/* Adds a dead process's counters to the total in slot 0. */
static void fold(struct refit_slot *dead)
{
	struct refit_slot *total = &refit.image->slots[0];
	for (int i = 0; i < REFIT_CALL_COUNT; i++) {
		uint64_t *from = &dead->calls[i].suppressed;
		uint64_t *to = &total->calls[i].suppressed;
		for (size_t f = 0;
		     f < sizeof dead->calls[i] / sizeof(uint64_t); f++) {
			refit_add(&to[f], __atomic_exchange_n(&from[f], 0,
							      __ATOMIC_RELAXED));
		}
	}
}

/* A free slot, or one whose process is dead; when all are alive, the total: the
 * sums stay right, only the division between processes is lost. */
static struct refit_slot *find_slot(uint32_t pid)
{
	struct refit_image *image = refit.image;
	for (int i = 2; i < REFIT_SLOTS; i++) {
		struct refit_slot *slot = &image->slots[i];
		uint32_t owner = __atomic_load_n(&slot->pid, __ATOMIC_RELAXED);
		int dead = owner != 0 &&
			   prim_syscall(SYS_kill, owner, 0, 0, 0) == -ESRCH;
		if ((owner == 0 || dead) &&
		    __atomic_compare_exchange_n(&slot->pid, &owner, pid, 0,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			if (dead) {
				fold(slot);
			}
			return slot;
		}
	}
	refit_flag(REFIT_IMAGE_SHARED_SLOT);
	return &image->slots[0];
}

struct refit_slot *refit_take_slot(uint32_t forked)
{
	uint32_t pid = 0;
	struct refit_slot *slot = &refit.image->slots[0];
	/* A filter of the program's own may kill for getpid(2) and kill(2):
	 * such a child counts into the total. */
	if (!refit_beneath_own_seccomp()) {
		pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
		if (forked) {
			slot = find_slot(pid);
		} else {
			slot = &refit.image->slots[1];
			slot->pid = pid;
			refit.first_slot = slot;
		}
	}
	refit_add(&refit.image->forked, forked);
	refit.mark->pid = pid;
	refit.mark->forked = forked;
	refit.mark->slot = slot;
	return slot;
}

void refit_in_forked_child(void)
{
	if (refit.image) {
		refit.mark->slot = NULL;
		refit_take_slot(1);
	}
}

void refit_suppressed_by_several(enum refit_call call)
{
	refit_add(&refit_counter(call)->suppressed, 1);
}
