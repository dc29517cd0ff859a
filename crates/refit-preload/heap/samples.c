#include "samples.h"

#include "address_space.h"
#include "call_stack.h"
#include "file_pages.h"
#include "object_list.h"
#include "own_memory.h"
#include "own_seccomp_of_sync.h"
#include "script_stack.h"

/* What this process knows of its samples. A child has those of its parent. */
static struct {
	const void *block; /* NULL: free */
	struct refit_block sizes;
} *kept;

/* How many of them have an address of this hash: without the table of live blocks it
 * is looked up for each one that is freed. */
#define HASHES_LOG 14
static uint16_t *of_hash;

/* No sample from here on was ever used by this process. */
static size_t used;

/* As many as were taken, and those of them since the objects were listed. */
static size_t taken, unlisted;

static uint64_t random_state;

/* ---- draws -------------------------------------------------------------- */

/* splitmix64 (public domain, Vigna): any two threads may go on at once. */
static uint64_t next_random(void)
{
	uint64_t z = __atomic_add_fetch(&random_state, 0x9e3779b97f4a7c15ull,
					__ATOMIC_RELAXED);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* -ln((n + 1) / 2^53) for n < 2^53. With x in [1, 2):
 * ln x = 2 (z + z^3/3 + z^5/5 + ...), z = (x - 1) / (x + 1) <= 1/3. */
static double minus_log(uint64_t n)
{
	uint64_t value = n + 1;
	int power = 63 - __builtin_clzll(value);
	double x = (double)value / (double)(1ull << power);
	double z = (x - 1) / (x + 1), square = z * z;
	double log = 2 * z *
		     (1 + square * (1. / 3 +
				    square * (1. / 5 +
					      square * (1. / 7 +
							square / 9))));
	return (53 - power) * 0.6931471805599453 - log;
}

static void draw(struct refit_heap_slot *slot, uint64_t from)
{
	uint64_t interval = __atomic_load_n(
		&refit_heap.samples->interval, __ATOMIC_RELAXED);
	double bytes = minus_log(next_random() >> 11) * (double)interval;
	slot->sample_interval = interval;
	__atomic_store_n(&slot->sample_at, from + 1 + (uint64_t)bytes,
			 __ATOMIC_RELAXED);
}

static uint16_t *hashed(const void *block)
{
	uint64_t mixed = ((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15ull;
	return &of_hash[mixed >> (64 - HASHES_LOG)];
}

/* ---- samples ------------------------------------------------------------ */

/* As an owner of samples is noted: 0 is nobody. */
static uint32_t my_place(void)
{
	return (uint32_t)refit_heap_place() + 1;
}

/* Pages of the file stay, whoever wrote them first. */
static int has_pages(size_t i)
{
	static uint8_t known[REFIT_HEAP_SAMPLES];
	if (known[i]) {
		return 1;
	}
	struct refit_heap_sample *sample = &refit_heap.samples->sample[i];
	known[i] = (uint8_t)refit_heap_allocate(sample, sizeof *sample);
	return known[i];
}

/* A place for a sample; REFIT_HEAP_SAMPLES when there is none. */
static size_t claim(const void *block, struct refit_block sizes)
{
	struct refit_heap_samples *samples = refit_heap.samples;
	for (size_t i = 0; i < refit_heap.places; i++) {
		uint32_t nobody = 0;
		if (kept[i].block ||
		    !__atomic_compare_exchange_n(&samples->owner[i], &nobody,
						 my_place(), 0,
						 __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED)) {
			continue;
		}
		if (!has_pages(i)) {
			samples->owner[i] = 0;
			break;
		}
		/* A process that ended may have left a sample here. */
		__atomic_store_n(&samples->sample[i].is_complete, 0,
				 __ATOMIC_RELEASE);
		kept[i].sizes = sizes;
		__atomic_fetch_add(hashed(block), 1, __ATOMIC_RELAXED);
		__atomic_store_n(&kept[i].block, block, __ATOMIC_RELEASE);
		size_t had = __atomic_load_n(&used, __ATOMIC_RELAXED);
		while (had < i + 1 &&
		       !__atomic_compare_exchange_n(&used, &had, i + 1, 0,
						    __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED)) {
		}
		return i;
	}
	return REFIT_HEAP_SAMPLES;
}

/* Each time half of what was free is used, later samples stand for twice as much:
 * so there is always room. */
static void spread(size_t i)
{
	struct refit_heap_samples *samples = refit_heap.samples;
	uint64_t interval =
		__atomic_load_n(&samples->interval, __ATOMIC_RELAXED);
	size_t doublings =
		(size_t)__builtin_ctzll(interval / REFIT_HEAP_INTERVAL);
	size_t free = refit_heap.places >> (doublings + 1);
	if (free && i >= refit_heap.places - free) {
		__atomic_compare_exchange_n(&samples->interval, &interval,
					    interval * 2, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	}
}

static void list_objects(void)
{
	size_t number = __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
	size_t since = __atomic_add_fetch(&unlisted, 1, __ATOMIC_RELAXED);
	/* The 1st, 2nd, 4th, ... of a process, and no fewer than one in 64. */
	if ((number & (number - 1)) == 0 || since >= 64) {
		__atomic_store_n(&unlisted, 0, __ATOMIC_RELAXED);
		refit_list_objects();
	}
}

static __attribute__((noinline)) int keep(const void *block,
					  struct refit_block sizes,
					  uint64_t interval)
{
	size_t i = claim(block, sizes);
	if (i == REFIT_HEAP_SAMPLES) {
		__atomic_fetch_add(&refit_heap.samples->lost, 1,
				   __ATOMIC_RELAXED);
		return 0;
	}
	struct refit_heap_sample *sample = &refit_heap.samples->sample[i];
	struct prim_place here = prim_place();
	sample->requested = sizes.requested;
	sample->usable = refit_heap_counts(sizes);
	sample->interval = interval;
	sample->instruction = here.instruction;
	sample->stack_pointer = here.stack;
	sample->frame_pointer = here.frame;
	sample->stack_bytes = refit_copy_stack(sample->stack, here.stack,
					       sizeof sample->stack);
	sample->script_bytes = refit_put_script_stack(sample->script,
						      sizeof sample->script);
	__atomic_store_n(&sample->is_complete, 1, __ATOMIC_RELEASE);
	spread(i);
	list_objects();
	return 1;
}

int __attribute__((noinline))
refit_sample(const void *block, struct refit_block sizes)
{
	struct refit_heap_slot *slot = refit_heap_mine;
	if (!kept || !refit_heap.mark->distance || refit_has_own_seccomp()) {
		slot->sample_at = UINT64_MAX;
		return 0;
	}
	uint64_t given = refit_load(&slot->given);
	uint64_t due = refit_load(&slot->sample_at);
	if (due == 0) {
		/* The thread's first allocation. */
		draw(slot, 0);
		if (given < refit_load(&slot->sample_at)) {
			return 0;
		}
	}
	uint64_t interval = slot->sample_interval;
	draw(slot, given);
	return keep(block, sizes, interval);
}

/* ---- what was kept ------------------------------------------------------ */

static size_t find(const void *block)
{
	size_t most = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < most; i++) {
		if (__atomic_load_n(&kept[i].block, __ATOMIC_ACQUIRE) ==
		    block) {
			return i;
		}
	}
	return REFIT_HEAP_SAMPLES;
}

struct refit_block refit_sample_look(const void *block)
{
	return kept[find(block)].sizes;
}

struct refit_block refit_sample_take(const void *block)
{
	size_t i = find(block);
	if (i == REFIT_HEAP_SAMPLES) {
		return (struct refit_block){0, 0};
	}
	struct refit_block sizes = kept[i].sizes;
	__atomic_fetch_sub(hashed(block), 1, __ATOMIC_RELAXED);
	struct refit_heap_samples *samples = refit_heap.samples;
	/* The parent's is its own. */
	if (refit_heap.mark->distance &&
	    __atomic_load_n(&samples->owner[i], __ATOMIC_RELAXED) ==
		    my_place()) {
		__atomic_store_n(&samples->sample[i].is_complete, 0,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&samples->owner[i], 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&kept[i].block, NULL, __ATOMIC_RELEASE);
	return sizes;
}

void refit_sample_drop(const void *block)
{
	if (kept && __atomic_load_n(hashed(block), __ATOMIC_RELAXED)) {
		refit_sample_take(block);
	}
}

void refit_samples_end(void)
{
	kept = NULL;
}

void refit_samples_begin(void)
{
	struct refit_heap_samples *samples = refit_heap.samples;
	random_state = prim_clock_ns() ^ (uintptr_t)&samples;
	prim_syscall(SYS_getrandom, &random_state, sizeof random_state,
		     1 /* GRND_NONBLOCK */, 0);
	if (refit_heap_allocate(samples, offsetof(struct refit_heap_samples,
						  objects))) {
		/* With half of the places all that has room is sampled. */
		uint64_t limit = refit_address_space();
		samples->interval = REFIT_HEAP_INTERVAL;
		while (limit != UINT64_MAX &&
		       samples->interval < limit / refit_heap.places * 2) {
			samples->interval *= 2;
		}
		of_hash = refit_own_memory(sizeof *of_hash << HASHES_LOG);
		refit_find_interpreter();
		kept = of_hash ? refit_own_memory((refit_heap.places + 1) *
						  sizeof *kept)
			       : NULL;
	}
}

void refit_samples_release(const struct refit_heap_block *place)
{
	uint32_t owner = (uint32_t)(place - refit_heap.file->processes) + 1;
	for (size_t i = 0; i < refit_heap.places; i++) {
		uint32_t expected = owner;
		__atomic_compare_exchange_n(
			&refit_heap.samples->owner[i], &expected, 0, 0,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

__attribute__((destructor)) static void end(void)
{
	if (kept && unlisted && refit_heap.mark->distance &&
	    !refit_has_own_seccomp()) {
		refit_list_objects();
	}
}
