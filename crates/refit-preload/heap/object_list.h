/* Which objects lie where in the process, for who unwinds its stacks. */
#ifndef REFIT_HEAP_OBJECT_LIST_H
#define REFIT_HEAP_OBJECT_LIST_H

/* Copies those lines of /proc/self/maps that have code into the file. */
void refit_list_objects(void);

#endif
