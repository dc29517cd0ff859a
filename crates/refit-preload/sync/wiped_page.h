/* Memory that a forked child finds empty. */
#ifndef REFIT_WIPED_PAGE_H
#define REFIT_WIPED_PAGE_H

#define REFIT_WIPED_PAGE 4096 /* bytes */

/* A page of zeros, private, which fork(2) wipes in the child (MADV_WIPEONFORK). NULL
 * where the kernel cannot do that (before Linux 4.14). */
void *refit_map_wiped_page(void);

#endif
