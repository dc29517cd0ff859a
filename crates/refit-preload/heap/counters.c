#include "counters.h"

#include <dlfcn.h>
#include <pthread.h>

#include "field.h"
#include "file_pages.h"
#include "own_memory.h"
#include "process_block.h"
#include "symbol.h"

/* Whether a slot belongs to a thread. Private, as the counters are. */
static uint8_t taken[REFIT_HEAP_SLOTS] = {1};

/* Gives a slot back when its thread ends. NULL: it is kept. */
static int (*set_specific)(pthread_key_t, const void *);
static pthread_key_t key;

static inline ptrdiff_t distance_to_file(void)
{
	ptrdiff_t distance = refit_heap.mark->distance;
	return LIKELY(distance != 0) ? distance
				     : refit_heap_find_distance(refit_heap_mine, taken);
}

/* ---- slots -------------------------------------------------------------- */

static struct refit_heap_slot *take_slot(ptrdiff_t distance)
{
	struct refit_heap_block *own = refit_heap.own;
	refit_heap_mine = &own->slots[0];
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
		refit_heap_mine = &own->slots[i];
		if (set_specific) {
			/* Of the first 32 keys none needs memory. */
			set_specific(key, refit_heap_mine);
		}
		break;
	}
	return refit_heap_mine;
}

/* ---- counting ----------------------------------------------------------- */

static uint64_t add(const struct refit_heap_slot *slot, uint64_t *field,
		    uint64_t n, ptrdiff_t distance)
{
	return slot->is_shared || !distance
		       ? refit_add_shared(field, n, distance)
		       : refit_add_own(field, n, distance);
}

static void add_pending(struct refit_heap_slot *slot, uint64_t usable,
			uint64_t blocks)
{
	add(slot, &slot->pending_blocks, blocks, 0);
	add(slot, &slot->pending_usable, usable, 0);
	if (refit_heap_is_unsettled(refit_load(&slot->pending_usable))) {
		refit_heap_settle(slot);
	}
}

int __attribute__((noinline))
refit_heap_change_anywhere(size_t requested, size_t usable,
			   enum refit_heap_change change)
{
	ptrdiff_t distance = distance_to_file();
	struct refit_heap_slot *slot = refit_heap_mine;
	if (!slot) {
		slot = take_slot(distance);
	}
	uint64_t sign = change == REFIT_HEAP_GIVEN ? 1 : (uint64_t)-1;
	struct refit_heap_class *class =
		&slot->classes[refit_heap_class_of(requested)];
	int is_due = 0;
	if (change == REFIT_HEAP_TAKEN) {
		add(slot, &class->frees, 1, distance);
	} else {
		add(slot, &class->allocations, sign, distance);
		add(slot, &slot->allocated, requested * sign, distance);
		is_due = add(slot, &slot->given,
			     refit_heap_given(usable) * sign,
			     0) >= refit_load(&slot->sample_at);
	}
	add(slot, &class->requested, requested * sign, distance);
	add(slot, &class->usable, usable * sign, distance);
	add(slot, &slot->pending_requested, requested * sign, 0);
	add_pending(slot, usable * sign, sign);
	return is_due;
}

/* ---- without the table of live blocks ----------------------------------- */

static void note_slack(uint64_t *most, uint64_t slack, ptrdiff_t distance)
{
	uint64_t known = refit_load(most);
	while (UNLIKELY(known < slack)) {
		if (__atomic_compare_exchange_n(most, &known, slack, 0,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			if (distance) {
				*refit_elsewhere(most, distance) = slack;
			}
			return;
		}
	}
}

int refit_heap_change_by_usable(size_t requested, size_t usable,
				enum refit_heap_change change)
{
	ptrdiff_t distance = distance_to_file();
	struct refit_heap_slot *slot = refit_heap_mine;
	if (!slot) {
		slot = take_slot(distance);
	}
	unsigned number = refit_heap_class_of(usable);
	struct refit_heap_class *class = &slot->classes[number];
	uint64_t sign = change == REFIT_HEAP_GIVEN ? 1 : (uint64_t)-1;
	int is_due = 0;
	if (change == REFIT_HEAP_TAKEN) {
		add(slot, &class->frees, 1, distance);
	} else {
		uint64_t slack = usable - requested;
		note_slack(&refit_heap.own->process.most_slack[number], slack,
			   distance);
		add(slot, &class->allocations, 1, distance);
		add(slot, &class->requested, slack, distance);
		add(slot, &slot->allocated, requested, distance);
		is_due = add(slot, &slot->given, refit_heap_given(usable),
			     0) >= refit_load(&slot->sample_at);
	}
	add(slot, &class->usable, usable * sign, distance);
	add_pending(slot, usable * sign, sign);
	return is_due;
}

uint64_t refit_heap_turn(void)
{
	struct refit_heap_quick *quick = refit_heap_quick;
	return (refit_heap_mine ? refit_load(&refit_heap_mine->given) : 0) +
	       (quick ? quick->granted - quick->left : 0);
}

void refit_heap_note_in_process(size_t field)
{
	char *process = (char *)&refit_heap.own->process;
	refit_add_shared((uint64_t *)(process + field), 1, distance_to_file());
}

/* Tells refit of memory that is the library's own. */
static void add_region(const void *at, size_t size)
{
	if (!refit_heap.own) {
		return;
	}
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

/* A load that follows a store to an address with the same last 12 bits is held up
 * as if it might be that of the load: so a counter and its copy in the file do not
 * have them in common. */
#define OFF_THE_FILE ((size_t)2112)

int refit_heap_map_counters(void)
{
	char *memory = refit_own_memory(sizeof *refit_heap.own + OFF_THE_FILE);
	if (!memory) {
		return 0;
	}
	refit_heap.own = (struct refit_heap_block *)(memory + OFF_THE_FILE);
	refit_heap.own->slots[0].is_shared = 1;
	refit_heap.own->process.slots_used = 2;
	refit_own_memory_tell(add_region);
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
	for (int i = 0; i < REFIT_HEAP_SLOTS; i++) {
		refit_heap.own->slots[i].sample_at = 0;
		refit_heap.own->slots[i].given = 0;
	}
}

static void end_of_thread(void *slot)
{
	struct refit_heap_block *own = refit_heap.own;
	refit_heap_mine = NULL;
	refit_heap_quick = NULL;
	if (!own) {
		return;
	}
	uint64_t index = (uint64_t)((struct refit_heap_slot *)slot - own->slots);
	__atomic_store_n(&taken[index], 0, __ATOMIC_RELEASE);
}

void refit_heap_watch_threads(void)
{
	/* By name: glibc 2.34 gave them a new version. */
	int (*create)(pthread_key_t *, void (*)(void *));
	*(void **)&create = refit_symbol(RTLD_DEFAULT, "pthread_key_create");
	void *set = refit_symbol(RTLD_DEFAULT, "pthread_setspecific");
	if (create && set && create(&key, end_of_thread) == 0) {
		*(void **)&set_specific = set;
	}
}
