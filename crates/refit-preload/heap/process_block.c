#include "process_block.h"

#include "field.h"
#include "file_pages.h"
#include "own_seccomp_of_sync.h"
#include "samples.h"
#include "small.h"

static void add_size(struct refit_heap_size *to,
		     const struct refit_heap_size *more)
{
	refit_add_shared(&to->requested, refit_load(&more->requested), 0);
	refit_add_shared(&to->usable, refit_load(&more->usable), 0);
	refit_add_shared(&to->blocks, refit_load(&more->blocks), 0);
}

static void fold_small(const struct refit_heap_block *dead,
		       struct refit_heap_size *live)
{
	struct refit_heap_ended *ended = &refit_heap.file->header.ended;
	const struct refit_heap_small_sizes *small = refit_heap.small_in_file;
	uint64_t slots = dead->process.small_slots;
	if (!small) {
		return;
	}
	small += dead - refit_heap.file->processes;
	for (size_t i = 0; i < REFIT_HEAP_SLOTS; i++) {
		for (size_t n = 0; slots >> i & 1 && n < REFIT_HEAP_SMALL; n++) {
			uint64_t count = refit_load(&small->counts[i][n]);
			uint64_t allocations = refit_small_allocations(count);
			uint64_t frees = refit_small_frees(count);
			uint64_t blocks = allocations - frees;
			refit_add_shared(&ended->allocations, allocations, 0);
			refit_add_shared(&ended->frees, frees, 0);
			refit_add_shared(&ended->allocated, allocations * n, 0);
			live->requested += blocks * n;
			live->usable += blocks * small->usable[n];
			live->blocks += blocks;
		}
	}
}

/* Adds the counts of a dead process to those of the ended. */
static void fold(struct refit_heap_block *dead)
{
	struct refit_heap_ended *ended = &refit_heap.file->header.ended;
	uint64_t used = dead->process.slots_used;
	if (used > REFIT_HEAP_SLOTS) {
		used = REFIT_HEAP_SLOTS;
	}
	struct refit_heap_size live = {0, 0, 0};
	fold_small(dead, &live);
	for (uint64_t i = 0; i < used; i++) {
		struct refit_heap_slot *slot = &dead->slots[i];
		refit_add_shared(&ended->allocated, refit_load(&slot->allocated), 0);
		for (int c = 0; c < REFIT_HEAP_CLASSES; c++) {
			struct refit_heap_class *class = &slot->classes[c];
			refit_add_shared(&ended->allocations,
				   refit_load(&class->allocations), 0);
			refit_add_shared(&ended->frees, refit_load(&class->frees), 0);
			live.requested += refit_load(&class->requested);
			live.usable += refit_load(&class->usable);
			live.blocks +=
				refit_load(&class->allocations) - refit_load(&class->frees);
		}
	}
	refit_add_shared(&ended->frees, refit_load(&dead->process.inherited), 0);
	refit_samples_release(dead);
	add_size(&ended->live, &live);
	/* Two processes may do this at once: then one peak of two is kept. */
	if (refit_load(&dead->process.peak.usable) > refit_load(&ended->peak.usable)) {
		refit_copy_words(&ended->peak, &dead->process.peak,
			   sizeof ended->peak);
	}
	refit_add_shared(&ended->processes, 1, 0);
}

/* A block of the file that is free, or whose process is dead. The first one is
 * that of the process that was exec'ed, which is never taken over. */
static struct refit_heap_block *find_block(uint32_t pid)
{
	for (int may_ask = 0; may_ask < 2; may_ask++) {
		for (size_t i = 1; i < refit_heap.processes; i++) {
			struct refit_heap_block *block =
				&refit_heap.file->processes[i];
			if (!may_ask && !refit_heap_allocate(&block->process,
						  REFIT_HEAP_PAGE)) {
				return NULL;
			}
			uint32_t *at = &block->process.pid;
			uint32_t owner = __atomic_load_n(at, __ATOMIC_RELAXED);
			int is_dead = owner != 0 && may_ask &&
				      prim_syscall(SYS_kill, owner, 0, 0, 0) ==
					      -ESRCH;
			if ((owner == 0 || is_dead) &&
			    __atomic_compare_exchange_n(at, &owner, pid, 0,
							__ATOMIC_RELAXED,
							__ATOMIC_RELAXED)) {
				if (is_dead) {
					fold(block);
				}
				return block;
			}
		}
	}
	return NULL;
}

void refit_heap_copy_to_file(ptrdiff_t distance)
{
	struct refit_heap_block *own = refit_heap.own;
	refit_copy_words(refit_elsewhere(own->slots, distance), own->slots,
		   own->process.slots_used * sizeof *own->slots);
	size_t pid_and_forked = offsetof(struct refit_heap_process, slots_used);
	refit_copy_words(refit_elsewhere(&own->process.slots_used, distance),
		   &own->process.slots_used,
		   sizeof own->process - pid_and_forked);
}

/* In a forked child only one thread goes on: what the others counted goes to slot
 * 0, together with what it counted itself before the fork. */
static void inherit(const struct refit_heap_slot *kept, uint8_t *taken)
{
	struct refit_heap_block *own = refit_heap.own;
	struct refit_heap_slot *inherited = &own->slots[0];
	struct refit_heap_size live = {0, 0, 0};
	if (refit_heap.small) {
		refit_small_inherit(inherited);
	}
	for (uint64_t i = 0; i < own->process.slots_used; i++) {
		struct refit_heap_slot *slot = &own->slots[i];
		for (int c = 0; c < REFIT_HEAP_CLASSES; c++) {
			struct refit_heap_class *from = &slot->classes[c];
			struct refit_heap_class *to = &inherited->classes[c];
			uint64_t blocks = from->allocations - from->frees;
			live.requested += from->requested;
			live.usable += from->usable;
			live.blocks += blocks;
			struct refit_heap_class still = *from;
			*from = (struct refit_heap_class){0, 0, 0, 0};
			to->allocations = 0;
			to->frees -= blocks;
			to->requested += still.requested;
			to->usable += still.usable;
		}
		slot->allocated = 0;
		slot->sample_at = 0;
		slot->given = 0;
		slot->pending_requested = 0;
		slot->pending_usable = 0;
		slot->pending_blocks = 0;
		if (i > 0 && slot != kept) {
			taken[i] = 0;
		}
	}
	own->process.inherited = live.blocks;
	own->process.live = live;
	own->process.peak = live;
	own->process.unknown_frees = 0;
	own->process.untracked = 0;
	own->process.vanished = 0;
}

/* Finds where the counters of this process are written: of one that has just been
 * forked, a block of its own. */
ptrdiff_t refit_heap_find_distance(const struct refit_heap_slot *kept,
				   uint8_t *taken)
{
	struct refit_heap_mark *mark = refit_heap.mark;
	struct refit_heap_file *file = refit_heap.file;
	if (!file || mark->is_lost) {
		return 0;
	}
	mark->is_lost = 1;
	inherit(kept, taken);
	__atomic_fetch_add(&file->header.forked, 1, __ATOMIC_RELAXED);
	/* A filter of the program's own may kill for these calls. */
	struct refit_heap_block *block = NULL;
	if (!refit_has_own_seccomp()) {
		block = find_block(
			(uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0));
	}
	size_t used = refit_heap.own->process.slots_used;
	if (!block ||
	    !refit_heap_allocate(block->slots, used * sizeof *block->slots)) {
		__atomic_fetch_add(&file->header.lost, 1, __ATOMIC_RELAXED);
		return 0;
	}
	ptrdiff_t distance = (char *)block - (char *)refit_heap.own;
	refit_heap_copy_to_file(distance);
	block->process.forked = 1;
	mark->is_lost = 0;
	mark->distance = distance;
	return distance;
}
