/* What a call costs when each function lies in a library of its own, and when all lie in one.
 * usage: calls LAYOUT CALLS WORK
 *
 * A method JIT that compiles by way of a C compiler loads one library for each method. Here the libraries are copies of
 * a few that load.sh built, which is enough: each is a file of its own, mapped to pages of its own. The functions are
 * called by pointer in one shuffled order, again and again; each adds 1, so the sum tells how many really ran. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef long function(long);

enum { MOST = 4000, REPEATS = 7 };
static const int sizes[] = { 20, 50, 100, 200, 400, 1000, 2000, MOST };

static const struct layout {
	const char *name;
	int kinds;       /* files to copy in turn; 0: one library with all functions */
	uintptr_t apart; /* bytes of which the functions' distances are multiples */
} layouts[] = {
	{ "merged", 0, 16 },
	{ "pages", 1, 4096 },
	{ "staggered", 64, 64 },
	{ "huge", 1, 2 << 20 },
};

static const struct layout *find(const char *name)
{
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (strcmp(layouts[i].name, name) == 0)
			return &layouts[i];
	errx(2, "no layout %s", name);
}

/* Processor time: while somebody else has the processor, no call runs. */
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static function *take(const char *path, const char *symbol)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	function *found = library == NULL ? NULL : (function *)(uintptr_t)dlsym(library, symbol);
	if (found == NULL)
		errx(1, "%s", dlerror());
	return found;
}

static void copy(const char *from, const char *to)
{
	static char bytes[1 << 20];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
	ssize_t length = in < 0 ? -1 : read(in, bytes, sizeof bytes);
	if (length <= 0 || length == sizeof bytes || out < 0 || write(out, bytes, (size_t)length) != length)
		err(1, "cannot copy %s to %s", from, to);
	close(in);
	close(out);
}

/* Loads all functions; the time that this took, in ns, without the copying. */
static double load(const struct layout *layout, const char *work, function **functions)
{
	char from[4096], path[4096], symbol[16];
	double took = 0;
	for (int i = 0; i < MOST; i++) {
		if (layout->kinds == 0) {
			snprintf(path, sizeof path, "%s/merged.so", work);
			snprintf(symbol, sizeof symbol, "method%d", i);
		} else {
			snprintf(from, sizeof from, "%s/%s.%d.so", work, layout->name, i % layout->kinds);
			snprintf(path, sizeof path, "%s/%d.so", work, i);
			strcpy(symbol, "method");
			copy(from, path);
		}
		double began = now();
		functions[i] = take(path, symbol);
		took += now() - began;
		/* Mapped it stays; and what is gone need not be written to the disk. */
		if (layout->kinds != 0)
			unlink(path);
	}
	/* A libc that does not care how a library wants to be aligned would make two layouts the same. */
	for (int i = 1; i < MOST; i++)
		if (functions[i] == functions[0] || ((uintptr_t)functions[i] - (uintptr_t)functions[0]) % layout->apart != 0)
			errx(1, "function %d of layout %s lies at %p, and function 0 at %p", i, layout->name,
			     (void *)(uintptr_t)functions[i], (void *)(uintptr_t)functions[0]);
	return took;
}

static void shuffle(function **functions, int count)
{
	uint64_t state = 0x2545f4914f6cdd1d;
	for (int i = count - 1; i > 0; i--) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		int j = (int)(state % (uint64_t)(i + 1));
		function *other = functions[i];
		functions[i] = functions[j];
		functions[j] = other;
	}
}

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return (left > right) - (left < right);
}

/* The median of some repeats, in ns for one call. The first pass, which fills caches, is not among them. */
static double measure(function **functions, int count, long calls, long *sum)
{
	double times[REPEATS];
	long passes = (calls + count - 1) / count;
	for (int repeat = -1; repeat < REPEATS; repeat++) {
		long ran = 0;
		double began = now();
		for (long pass = 0; pass < passes; pass++)
			for (int i = 0; i < count; i++)
				ran = functions[i](ran);
		if (repeat >= 0)
			times[repeat] = (now() - began) / (double)ran;
		*sum += ran;
	}
	qsort(times, REPEATS, sizeof *times, ascending);
	return times[REPEATS / 2];
}

int main(int argc, char **argv)
{
	static function *all[MOST], *some[MOST];
	if (argc != 4)
		errx(2, "usage: calls LAYOUT CALLS WORK");
	const struct layout *layout = find(argv[1]);
	long calls = strtol(argv[2], NULL, 10), sum = 0;
	printf("open %.3f us\n", load(layout, argv[3], all) / MOST / 1e3);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memcpy(some, all, sizeof some);
		shuffle(some, sizes[i]);
		printf("n%d %.3f ns\n", sizes[i], measure(some, sizes[i], calls, &sum));
	}
	printf("%ld calls and more in each repeat, %ld in all\n", calls, sum);
	return 0;
}
