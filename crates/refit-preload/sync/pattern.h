/* Patterns of paths, as `sync@/var/spool/=off` writes them. */
#ifndef REFIT_PATTERN_H
#define REFIT_PATTERN_H

/* Whether the pattern matches path, which is absolute. `*` and `?` match
 * within a name, `**` across names; a pattern that ends with `/` means that
 * directory and all that is below it. Allocates nothing. */
int refit_pattern_matches(const char *pattern, const char *path);

#endif
