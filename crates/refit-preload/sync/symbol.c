#include "symbol.h"

#include <link.h>

PRIM_OLDEST(dlsym);
PRIM_OLDEST(dlerror);
extern __typeof__(dlsym) dlsym __attribute__((weak));
extern __typeof__(dlerror) dlerror __attribute__((weak));

/* The dynamic section of this library. */
extern ElfW(Dyn) _DYNAMIC[] HIDDEN;

/* The symbols of one loaded object. */
struct object {
	const ElfW(Sym) *symbols;
	const char *names;
	const uint16_t *versions; /* NULL: it has none */
	const uint32_t *hash; /* DT_GNU_HASH */
};

/* A version that only those see who ask for it (glibc's elf/dl-lookup.c). */
#define HIDDEN_VERSION 0x8000

/* glibc makes the addresses absolute, but for the kernel's object and in musl. */
static const void *at(ElfW(Addr) base, ElfW(Addr) address)
{
	return (const void *)(address < base ? base + address : address);
}

static struct object read_object(ElfW(Addr) base, const ElfW(Dyn) *dynamic)
{
	struct object object = {0};
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const void *place = at(base, dynamic->d_un.d_ptr);
		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			object.symbols = place;
			break;
		case DT_STRTAB:
			object.names = place;
			break;
		case DT_VERSYM:
			object.versions = place;
			break;
		case DT_GNU_HASH:
			object.hash = place;
			break;
		default:
			break;
		}
	}
	return object;
}

/* One that is called or read at its address. An STT_GNU_IFUNC would have to be
 * asked for it: none of what is looked up is one, and it is left out. */
static int is_it(const struct object *object, uint32_t index, const char *name)
{
	const ElfW(Sym) *symbol = &object->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
	    (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE)) {
		return 0;
	}
	if (object->versions && object->versions[index] & HIDDEN_VERSION) {
		return 0;
	}
	return prim_equal(object->names + symbol->st_name, name);
}

/* bucket count, first hashed symbol, words of the filter, its shift; the filter, the
 * buckets, and of each hashed symbol the hash, whose lowest bit ends a bucket. */
static uint32_t find_by_hash(const struct object *object, const char *name)
{
	uint32_t hash = 5381;
	for (const char *c = name; *c; c++) {
		hash = hash * 33 + (unsigned char)*c;
	}
	const uint32_t *table = object->hash;
	uint32_t count = table[0], first = table[1];
	const uint32_t *buckets =
		table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
	const uint32_t *hashes = buckets + count;
	uint32_t index = count ? buckets[hash % count] : 0;
	if (index < first) {
		return 0;
	}
	for (;; index++) {
		uint32_t its = hashes[index - first];
		if ((its | 1) == (hash | 1) && is_it(object, index, name)) {
			return index;
		}
		if (its & 1) {
			return 0;
		}
	}
}

struct search {
	const char *name;
	int after_us; /* only in objects that were loaded after this one */
	int past_us;
	void *found;
};

static int look_into(struct dl_phdr_info *info, size_t size, void *argument)
{
	(void)size;
	struct search *search = argument;
	const ElfW(Dyn) *dynamic = NULL;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
			dynamic = (const ElfW(Dyn) *)(info->dlpi_addr +
						      info->dlpi_phdr[i].p_vaddr);
		}
	}
	if (dynamic == _DYNAMIC) {
		search->past_us = 1;
		if (search->after_us) {
			return 0;
		}
	}
	if (!dynamic || (search->after_us && !search->past_us)) {
		return 0;
	}
	struct object object = read_object(info->dlpi_addr, dynamic);
	/* Linkers of distributions make DT_GNU_HASH since 2006; what has only
	 * DT_HASH is left out. */
	if (!object.symbols || !object.names || !object.hash) {
		return 0;
	}
	uint32_t index = find_by_hash(&object, search->name);
	if (index == 0) {
		return 0;
	}
	search->found = (void *)(info->dlpi_addr +
				 object.symbols[index].st_value);
	return 1;
}

void *refit_symbol(void *scope, const char *name)
{
	if (LIKELY(dlsym != NULL)) {
		return dlsym(scope, name);
	}
	/* What a handle leads to is among all that is loaded, and is found there. */
	struct search search = {name, scope == RTLD_NEXT, 0, NULL};
	if (scope == RTLD_NEXT || scope == RTLD_DEFAULT) {
		dl_iterate_phdr(look_into, &search);
	}
	return search.found;
}

void refit_forget_symbol_errors(void)
{
	if (dlerror) {
		dlerror();
	}
}
