#include "counters.h"

#include <dlfcn.h>
#include <pthread.h>

#include "field.h"
#include "own_memory.h"
#include "process_block.h"

__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");

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

static inline ptrdiff_t distance_to_file(void)
{
	ptrdiff_t distance = refit_heap.mark->distance;
	return LIKELY(distance != 0) ? distance
				     : refit_heap_find_distance(mine, taken);
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
		    !refit_heap_allocate(refit_elsewhere(&own->slots[i], distance),
			      sizeof own->slots[i])) {
			__atomic_store_n(&taken[i], 0, __ATOMIC_RELEASE);
			break;
		}
		uint64_t used = refit_load(&own->process.slots_used);
		while (used < i + 1 &&
		       !__atomic_compare_exchange_n(
			       &own->process.slots_used, &used, i + 1, 0,
			       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		}
		if (distance && used < i + 1) {
			*refit_elsewhere(&own->process.slots_used, distance) = i + 1;
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
		refit_add_shared(&process->live.requested, pending[0], distance),
		refit_add_shared(&process->live.usable, pending[1], distance),
		refit_add_shared(&process->live.blocks, pending[2], distance),
	};
	if ((int64_t)now.usable > (int64_t)refit_load(&process->peak.usable)) {
		refit_copy_words(&process->peak, &now, sizeof now);
		refit_copy_words(refit_elsewhere(&process->peak, distance), &now,
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
		refit_add_shared(number, more, distance);
		refit_add_shared(&class->requested, requested * sign, distance);
		refit_add_shared(&class->usable, usable * sign, distance);
		if (change != TAKEN) {
			refit_add_shared(&slot->allocated, requested * sign,
				   distance);
		}
		refit_add_shared(&slot->pending_requested, requested * sign, 0);
		refit_add_shared(&slot->pending_blocks, sign, 0);
		refit_add_shared(&slot->pending_usable, usable * sign, 0);
	} else {
		refit_add_own(number, more, distance);
		refit_add_own(&class->requested, requested * sign, distance);
		refit_add_own(&class->usable, usable * sign, distance);
		if (change != TAKEN) {
			refit_add_own(&slot->allocated, requested * sign, distance);
		}
		slot->pending_requested += requested * sign;
		slot->pending_blocks += sign;
		slot->pending_usable += usable * sign;
	}
	if (UNLIKELY(magnitude(refit_load(&slot->pending_usable)) >=
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
	return mine ? refit_load(&mine->allocated) +
			      refit_load(&mine->classes[0].allocations)
		    : 0;
}

void refit_heap_note_in_process(size_t field)
{
	char *process = (char *)&refit_heap.own->process;
	refit_add_shared((uint64_t *)(process + field), 1, distance_to_file());
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
			refit_copy_words(refit_elsewhere(&regions[i], distance),
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
	refit_heap_copy_to_file(distance);
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
