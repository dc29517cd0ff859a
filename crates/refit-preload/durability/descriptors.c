#include "descriptors.h"

uint64_t refit_descriptors[REFIT_DESCRIPTORS];
uint8_t refit_descriptor_bits[REFIT_DESCRIPTORS];

void refit_put_new_path_of(char to[REFIT_FILE_EVENT_PATH], int fd)
{
	if (!(refit_bits_of(fd) & REFIT_PATH_IS_TOLD)) {
		refit_put_path_of(to, fd);
		refit_set_bits(fd, REFIT_PATH_IS_TOLD);
	}
}
