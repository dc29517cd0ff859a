/* Patterns of paths, as `sync@/var/spool/=off` writes them. */
#ifndef REFIT_PATTERN_H
#define REFIT_PATTERN_H

/* Whether path, absolute, is one of the pattern's. `*` and `?` match within a
 * name, `**` across names; a pattern that ends with `/` means that
 * directory and all that is below it. Bounded work, no memory. */
int refit_pattern_matches(const char *pattern, const char *path);

#endif
