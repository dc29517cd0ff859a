#include "disk.h"

#include <stddef.h>

/* The maximum of the longest flushes that a queue is busy for, counted from now.
 * A flush runs and the next one waits: that is two, and a few more where
 * processes are interrupted while they join. Whatever is busy for longer was
 * written by a program of the tree, and is ignored. */
#define MOST_FLUSHES 8

/* splitmix64, of Steele, Lea and Flood (OOPSLA 2014): number n of a
 * sequence. */
static uint64_t mix(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint32_t refit_disk_fault(const struct refit_disk *disk,
			  struct refit_flushes *flushes)
{
	if (disk->kind != REFIT_DISK_FAIL) {
		return 0;
	}
	uint64_t n = __atomic_fetch_add(&flushes->number, 1, __ATOMIC_RELAXED);
	int fails = 0;
	switch (disk->when) {
	case REFIT_WHEN_ALWAYS:
		fails = 1;
		break;
	case REFIT_WHEN_EVERY:
		fails = disk->n && (n + 1) % disk->n == 0;
		break;
	case REFIT_WHEN_AFTER:
		fails = n >= disk->n;
		break;
	case REFIT_WHEN_CHANCE:
		fails = mix(disk->seed, n) % 1000000 < disk->n;
		break;
	default:
		break;
	}
	return fails ? disk->error : 0;
}

static struct refit_queue *queue_of(struct refit_flushes *flushes, uint64_t device)
{
	for (int i = 0; i < REFIT_QUEUES - 1; i++) {
		struct refit_queue *queue = &flushes->queues[i];
		uint64_t owner = __atomic_load_n(&queue->device, __ATOMIC_RELAXED);
		if (owner == device ||
		    (!owner && __atomic_compare_exchange_n(
				       &queue->device, &owner, device, 0,
				       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) ||
		    owner == device) {
			return queue;
		}
	}
	return &flushes->queues[REFIT_QUEUES - 1];
}

/* Quantiles ascend (refit-launch/src/disk/quantiles.rs). */
static uint64_t longest_ns(const struct refit_disk *disk)
{
	return disk->latency_ns[REFIT_LATENCIES - 1];
}

static uint64_t next_service(const struct refit_disk *disk,
			     struct refit_flushes *flushes)
{
	uint64_t n = __atomic_fetch_add(&flushes->number, 1, __ATOMIC_RELAXED);
	return disk->latency_ns[mix(disk->seed, n) % REFIT_LATENCIES];
}

uint64_t refit_disk_until(const struct refit_disk *disk,
			  struct refit_flushes *flushes, uint64_t device,
			  uint64_t began_ns, uint64_t now_ns)
{
	if (disk->kind != REFIT_DISK_LATENCY) {
		return began_ns;
	}
	struct refit_queue *queue = queue_of(flushes, device);
	uint64_t busy_ns = __atomic_load_n(&queue->busy_ns, __ATOMIC_RELAXED);
	uint64_t service_ns = 0;
	for (;;) {
		uint64_t start_ns = began_ns;
		int is_busy = busy_ns > began_ns;
		if (is_busy && busy_ns > now_ns) {
			is_busy = (busy_ns - now_ns) / MOST_FLUSHES <=
				  longest_ns(disk);
		}
		if (is_busy) {
			/* A flush that has not begun serves this call too: file
			 * systems and the block layer merge what waits. */
			if (__atomic_load_n(&queue->from_ns,
					    __ATOMIC_RELAXED) >= began_ns) {
				return busy_ns;
			}
			start_ns = busy_ns;
		}
		if (!service_ns) {
			service_ns = next_service(disk, flushes);
		}
		uint64_t until_ns = start_ns + service_ns;
		if (__atomic_compare_exchange_n(&queue->busy_ns, &busy_ns,
						until_ns, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			/* A call in between only gets one flush more. */
			__atomic_store_n(&queue->from_ns, start_ns,
					 __ATOMIC_RELAXED);
			return until_ns;
		}
	}
}
