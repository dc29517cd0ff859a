#include "counters.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include "own_memory.h"
#include "own_seccomp_of_sync.h"

__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");

#define MADV_POPULATE_WRITE_NUMBER 23 /* Linux 5.14 */

static struct refit_heap_mark mark_at_start;

struct refit_heap_counters refit_heap = {.mark = &mark_at_start};

/* Static thread-local storage: a preloaded library always gets it, without a
 * call of __tls_get_addr, which could allocate. */
static __thread struct refit_heap_slot *mine
	__attribute__((tls_model("initial-exec")));

/* Whether a slot belongs to a thread. Private, as the counters are. */
static uint8_t taken[REFIT_HEAP_SLOTS] = {1};

/* Gives a slot back when its thread ends. NULL: it is kept. */
static int (*set_specific)(pthread_key_t, const void *);
static pthread_key_t key;

static uint64_t load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static uint64_t *elsewhere(const void *field, ptrdiff_t distance)
{
	return (uint64_t *)(uintptr_t)((const char *)field + distance);
}

/* Fields that other threads write too. */
static uint64_t add_shared(uint64_t *field, uint64_t n, ptrdiff_t distance)
{
	uint64_t sum = __atomic_add_fetch(field, n, __ATOMIC_RELAXED);
	if (distance) {
		__atomic_fetch_add(elsewhere(field, distance), n,
				   __ATOMIC_RELAXED);
	}
	return sum;
}

/* Fields that one thread writes. */
static inline void add(uint64_t *field, uint64_t n, ptrdiff_t distance)
{
	uint64_t sum = load(field) + n;
	__atomic_store_n(field, sum, __ATOMIC_RELAXED);
	__atomic_store_n(elsewhere(field, distance), sum, __ATOMIC_RELAXED);
}

/* ---- the file ----------------------------------------------------------- */

/* Pages of the file are written only when they are there: on a full file system
 * the kernel would end the program with SIGBUS. */
static int allocate(const void *page, size_t size)
{
	return !refit_has_own_seccomp() &&
	       prim_syscall(SYS_madvise, page, size, MADV_POPULATE_WRITE_NUMBER,
			    0) == 0;
}

static void copy_words(void *to, const void *from, size_t size)
{
	const uint64_t *source = from;
	uint64_t *target = to;
	for (size_t i = 0; i < size / sizeof *source; i++) {
		__atomic_store_n(&target[i], load(&source[i]),
				 __ATOMIC_RELAXED);
	}
}

static void add_size(struct refit_heap_size *to,
		     const struct refit_heap_size *more)
{
	add_shared(&to->requested, load(&more->requested), 0);
	add_shared(&to->usable, load(&more->usable), 0);
	add_shared(&to->blocks, load(&more->blocks), 0);
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
	for (uint64_t i = 0; i < used; i++) {
		struct refit_heap_slot *slot = &dead->slots[i];
		add_shared(&ended->allocated, load(&slot->allocated), 0);
		for (int c = 0; c < REFIT_HEAP_CLASSES; c++) {
			struct refit_heap_class *class = &slot->classes[c];
			add_shared(&ended->allocations,
				   load(&class->allocations), 0);
			add_shared(&ended->frees, load(&class->frees), 0);
			live.requested += load(&class->requested);
			live.usable += load(&class->usable);
			live.blocks +=
				load(&class->allocations) - load(&class->frees);
		}
	}
	add_shared(&ended->frees, load(&dead->process.inherited), 0);
	add_size(&ended->live, &live);
	/* Two processes may do this at once: then one peak of two is kept. */
	if (load(&dead->process.peak.usable) > load(&ended->peak.usable)) {
		copy_words(&ended->peak, &dead->process.peak,
			   sizeof ended->peak);
	}
	add_shared(&ended->processes, 1, 0);
}

/* A block of the file that is free, or whose process is dead. The first one is
 * that of the process that was exec'ed, which is never taken over. */
static struct refit_heap_block *find_block(uint32_t pid)
{
	for (int may_ask = 0; may_ask < 2; may_ask++) {
		for (int i = 1; i < REFIT_HEAP_PROCESSES; i++) {
			struct refit_heap_block *block =
				&refit_heap.file->processes[i];
			if (!may_ask && !allocate(&block->process,
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

static void copy_to_file(ptrdiff_t distance)
{
	struct refit_heap_block *own = refit_heap.own;
	copy_words(elsewhere(own->slots, distance), own->slots,
		   own->process.slots_used * sizeof *own->slots);
	size_t pid_and_forked = offsetof(struct refit_heap_process, slots_used);
	copy_words(elsewhere(&own->process.slots_used, distance),
		   &own->process.slots_used,
		   sizeof own->process - pid_and_forked);
}

/* In a forked child only one thread goes on: what the others counted goes to slot
 * 0, together with what it counted itself before the fork. */
static void inherit(void)
{
	struct refit_heap_block *own = refit_heap.own;
	struct refit_heap_slot *inherited = &own->slots[0];
	struct refit_heap_size live = {0, 0, 0};
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
		slot->pending_requested = 0;
		slot->pending_usable = 0;
		slot->pending_blocks = 0;
		if (i > 0 && slot != mine) {
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
static ptrdiff_t find_distance(void)
{
	struct refit_heap_mark *mark = refit_heap.mark;
	struct refit_heap_file *file = refit_heap.file;
	if (!file || mark->is_lost) {
		return 0;
	}
	mark->is_lost = 1;
	inherit();
	__atomic_fetch_add(&file->header.forked, 1, __ATOMIC_RELAXED);
	/* A filter of the program's own may kill for these calls. */
	struct refit_heap_block *block = NULL;
	if (!refit_has_own_seccomp()) {
		block = find_block(
			(uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0));
	}
	size_t used = refit_heap.own->process.slots_used;
	if (!block ||
	    !allocate(block->slots, used * sizeof *block->slots)) {
		__atomic_fetch_add(&file->header.lost, 1, __ATOMIC_RELAXED);
		return 0;
	}
	ptrdiff_t distance = (char *)block - (char *)refit_heap.own;
	copy_to_file(distance);
	block->process.forked = 1;
	mark->is_lost = 0;
	mark->distance = distance;
	return distance;
}

static inline ptrdiff_t distance_to_file(void)
{
	ptrdiff_t distance = refit_heap.mark->distance;
	return LIKELY(distance != 0) ? distance : find_distance();
}

/* ---- slots -------------------------------------------------------------- */

static struct refit_heap_slot *take_slot(ptrdiff_t distance)
{
	struct refit_heap_block *own = refit_heap.own;
	mine = &own->slots[0];
	for (uint64_t i = 1; i < REFIT_HEAP_SLOTS; i++) {
		uint8_t free = 0;
		if (!__atomic_compare_exchange_n(&taken[i], &free, 1, 0,
						 __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED)) {
			continue;
		}
		if (distance && i > 1 &&
		    !allocate(elsewhere(&own->slots[i], distance),
			      sizeof own->slots[i])) {
			__atomic_store_n(&taken[i], 0, __ATOMIC_RELEASE);
			break;
		}
		uint64_t used = load(&own->process.slots_used);
		while (used < i + 1 &&
		       !__atomic_compare_exchange_n(
			       &own->process.slots_used, &used, i + 1, 0,
			       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		}
		if (distance && used < i + 1) {
			*elsewhere(&own->process.slots_used, distance) = i + 1;
		}
		mine = &own->slots[i];
		if (set_specific) {
			/* Of the first 32 keys none needs memory. */
			set_specific(key, mine);
		}
		break;
	}
	return mine;
}

/* ---- counting ----------------------------------------------------------- */

static int64_t magnitude(uint64_t n)
{
	return (int64_t)n < 0 ? -(int64_t)n : (int64_t)n;
}

/* Adds what one thread has pending to the size of the process. */
static void __attribute__((noinline)) settle(struct refit_heap_slot *slot,
					     ptrdiff_t distance)
{
	struct refit_heap_process *process = &refit_heap.own->process;
	uint64_t pending[3] = {
		__atomic_exchange_n(&slot->pending_requested, 0,
				    __ATOMIC_RELAXED),
		__atomic_exchange_n(&slot->pending_usable, 0,
				    __ATOMIC_RELAXED),
		__atomic_exchange_n(&slot->pending_blocks, 0,
				    __ATOMIC_RELAXED),
	};
	struct refit_heap_size now = {
		add_shared(&process->live.requested, pending[0], distance),
		add_shared(&process->live.usable, pending[1], distance),
		add_shared(&process->live.blocks, pending[2], distance),
	};
	if ((int64_t)now.usable > (int64_t)load(&process->peak.usable)) {
		copy_words(&process->peak, &now, sizeof now);
		copy_words(elsewhere(&process->peak, distance), &now,
			   sizeof now);
	}
}

static inline unsigned class_of(size_t size)
{
	if (LIKELY(size <= REFIT_HEAP_FINE_BYTES)) {
		return (unsigned)((size - (size != 0)) >> 3);
	}
	uint64_t last = size - 1;
	unsigned power = 63u - (unsigned)__builtin_clzll(last);
	unsigned class = REFIT_HEAP_FINE_CLASSES + (power - 9) * 4 +
			 ((unsigned)(last >> (power - 2)) & 3);
	return class < REFIT_HEAP_CLASSES ? class : REFIT_HEAP_CLASSES - 1;
}

enum change { GIVEN, TAKEN, RETRACTED };

static inline __attribute__((always_inline)) void
change(size_t requested, size_t usable, enum change change)
{
	ptrdiff_t distance = distance_to_file();
	struct refit_heap_slot *slot = mine;
	if (UNLIKELY(!slot)) {
		slot = take_slot(distance);
	}
	uint64_t sign = change == GIVEN ? 1 : (uint64_t)-1;
	struct refit_heap_class *class = &slot->classes[class_of(requested)];
	uint64_t *number = change == TAKEN ? &class->frees : &class->allocations;
	uint64_t more = change == RETRACTED ? (uint64_t)-1 : 1;
	if (UNLIKELY(slot->is_shared)) {
		add_shared(number, more, distance);
		add_shared(&class->requested, requested * sign, distance);
		add_shared(&class->usable, usable * sign, distance);
		if (change != TAKEN) {
			add_shared(&slot->allocated, requested * sign,
				   distance);
		}
		add_shared(&slot->pending_requested, requested * sign, 0);
		add_shared(&slot->pending_blocks, sign, 0);
		add_shared(&slot->pending_usable, usable * sign, 0);
	} else {
		add(number, more, distance);
		add(&class->requested, requested * sign, distance);
		add(&class->usable, usable * sign, distance);
		if (change != TAKEN) {
			add(&slot->allocated, requested * sign, distance);
		}
		slot->pending_requested += requested * sign;
		slot->pending_blocks += sign;
		slot->pending_usable += usable * sign;
	}
	if (UNLIKELY(magnitude(load(&slot->pending_usable)) >=
		     REFIT_HEAP_LAG)) {
		settle(slot, distance);
	}
}

void refit_heap_count(size_t requested, size_t usable)
{
	change(requested, usable, GIVEN);
}

void refit_heap_uncount(size_t requested, size_t usable)
{
	change(requested, usable, TAKEN);
}

void refit_heap_retract(size_t requested, size_t usable)
{
	change(requested, usable, RETRACTED);
}

uint64_t refit_heap_turn(void)
{
	/* Requests of no bytes are in the first class. */
	return mine ? load(&mine->allocated) +
			      load(&mine->classes[0].allocations)
		    : 0;
}

void refit_heap_note_in_process(size_t field)
{
	char *process = (char *)&refit_heap.own->process;
	add_shared((uint64_t *)(process + field), 1, distance_to_file());
}

void refit_heap_add_region(const void *at, size_t size)
{
	struct refit_heap_region *regions = refit_heap.own->process.regions;
	ptrdiff_t distance = refit_heap.mark->distance;
	for (int i = 0; i < REFIT_HEAP_REGIONS; i++) {
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(&regions[i].size, &none, size,
						0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			regions[i].at = (uintptr_t)at;
			copy_words(elsewhere(&regions[i], distance),
				   &regions[i], sizeof regions[i]);
			return;
		}
	}
}

/* ---- start and end ------------------------------------------------------ */

int refit_heap_map_counters(void)
{
	refit_heap.own = refit_own_memory(sizeof *refit_heap.own);
	if (!refit_heap.own) {
		return 0;
	}
	refit_heap.own->slots[0].is_shared = 1;
	refit_heap.own->process.slots_used = 2;
	refit_own_memory_is_ready();
	return 1;
}

void refit_heap_publish(struct refit_heap_file *file,
			struct refit_heap_mark *mark)
{
	struct refit_heap_block *first = &file->processes[0];
	ptrdiff_t distance = (char *)first - (char *)refit_heap.own;
	copy_to_file(distance);
	first->process.pid =
		(uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	mark->distance = distance;
	refit_heap.file = file;
	refit_heap.mark = mark;
}

static void end_of_thread(void *slot)
{
	struct refit_heap_block *own = refit_heap.own;
	mine = NULL;
	uint64_t index = (uint64_t)((struct refit_heap_slot *)slot - own->slots);
	__atomic_store_n(&taken[index], 0, __ATOMIC_RELEASE);
}

void refit_heap_watch_threads(void)
{
	/* By name: glibc 2.34 gave them a new version. */
	int (*create)(pthread_key_t *, void (*)(void *));
	*(void **)&create = dlsym(RTLD_DEFAULT, "pthread_key_create");
	void *set = dlsym(RTLD_DEFAULT, "pthread_setspecific");
	if (create && set && create(&key, end_of_thread) == 0) {
		*(void **)&set_specific = set;
	}
}
