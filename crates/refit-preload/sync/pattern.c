#include "pattern.h"

#include <stddef.h>

/* Where to continue when the last star has to match one more character. */
struct star {
	const char *pattern; /* after the star; NULL: there was none */
	const char *path;
};

int refit_pattern_matches(const char *pattern, const char *path)
{
	/* Of several stars only the last can need another try; one that crosses
	 * names is tried only after one that does not. */
	struct star within = {NULL, NULL}, across = {NULL, NULL};
	for (;;) {
		if (pattern[0] == '*' && pattern[1] == '*') {
			pattern += 2;
			across = (struct star){pattern, path};
			within = (struct star){NULL, NULL};
			continue;
		}
		if (pattern[0] == '*') {
			pattern++;
			within = (struct star){pattern, path};
			continue;
		}
		/* A tree: the rest of the path is in it. Where nothing is
		 * left, the path is the tree's own directory, whose sync
		 * makes the names in it durable. */
		if (pattern[0] == '/' && !pattern[1] &&
		    (path[0] == '/' || !path[0])) {
			return 1;
		}
		if (*path && ((*pattern == '?' && *path != '/') ||
			      (*pattern != '?' && *pattern == *path))) {
			pattern++;
			path++;
			continue;
		}
		if (!*pattern && !*path) {
			return 1;
		}
		if (within.pattern && *within.path && *within.path != '/') {
			within.path++;
			pattern = within.pattern;
			path = within.path;
		} else if (across.pattern && *across.path) {
			across.path++;
			pattern = across.pattern;
			path = across.path;
			within = (struct star){NULL, NULL};
		} else {
			return 0;
		}
	}
}
