#include "symbol.h"

/* The lists of glibc's loader (link.h) and of musl's. */
#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak));

/* The dynamic section of this library. */
extern ElfW(Dyn) _DYNAMIC[] HIDDEN;

/* The symbols of one loaded object. */
struct object {
	const ElfW(Sym) *symbols;
	const char *names;
	const uint16_t *versions; /* NULL: it has none */
	const uint32_t *gnu_hash; /* DT_GNU_HASH, or NULL */
	const uint32_t *hash;     /* DT_HASH, or NULL */
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
			object.gnu_hash = place;
			break;
		case DT_HASH:
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
static uint32_t find_by_gnu_hash(const struct object *object, const char *name)
{
	uint32_t hash = 5381;
	for (const char *c = name; *c; c++) {
		hash = hash * 33 + (unsigned char)*c;
	}
	const uint32_t *table = object->gnu_hash;
	uint32_t count = table[0], first = table[1];
	const unsigned bits = 8 * sizeof(ElfW(Addr));
	const ElfW(Addr) *filter = (const void *)(table + 4);
	ElfW(Addr) word = filter[hash / bits & (table[2] - 1)];
	if (!(word >> hash % bits & word >> (hash >> table[3]) % bits & 1)) {
		return 0;
	}
	const uint32_t *buckets = (const void *)(filter + table[2]);
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

/* bucket count, chain count; the buckets, and of each symbol the next in its bucket
 * (ELF gABI). Kernels before 5.4 gave their own object only this one. */
static uint32_t find_by_hash(const struct object *object, const char *name)
{
	uint32_t hash = 0;
	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash ^= (hash >> 24) & 0xf0;
		hash &= 0x0fffffff;
	}
	const uint32_t *table = object->hash;
	uint32_t count = table[0];
	const uint32_t *chains = table + 2 + count;
	uint32_t index = count ? table[2 + hash % count] : 0;
	while (index && !is_it(object, index, name)) {
		index = chains[index];
	}
	return index;
}

static void *find(ElfW(Addr) base, const ElfW(Dyn) *dynamic, const char *name)
{
	struct object object = read_object(base, dynamic);
	uint32_t index = 0;
	if (object.symbols && object.names && object.gnu_hash) {
		index = find_by_gnu_hash(&object, name);
	} else if (object.symbols && object.names && object.hash) {
		index = find_by_hash(&object, name);
	}
	return index ? (void *)(base + object.symbols[index].st_value) : NULL;
}

const struct link_map *refit_objects(void)
{
	if (&_r_debug && _r_debug.r_map) {
		return _r_debug.r_map;
	}
	return &_dl_debug_addr && _dl_debug_addr ? _dl_debug_addr->r_map : NULL;
}

int refit_is_us(const struct link_map *object)
{
	return object->l_ld == _DYNAMIC;
}

void *refit_symbol_of(const struct link_map *object, const char *name)
{
	return object->l_ld ? find(object->l_addr, object->l_ld, name) : NULL;
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
	search->found = find(info->dlpi_addr, dynamic, search->name);
	return search->found != NULL;
}

void *refit_symbol_later(void *scope, const char *name)
{
	struct search search = {name, scope == RTLD_NEXT, 0, NULL};
	dl_iterate_phdr(look_into, &search);
	return search.found;
}

struct refit_definition refit_definition(void *scope, const char *name)
{
	struct refit_definition it = {NULL, refit_objects()};
	if (!it.object) {
		it.address = refit_symbol_later(scope, name);
		return it;
	}
	int counts = scope != RTLD_NEXT;
	for (; it.object; it.object = it.object->l_next) {
		if (scope == RTLD_NEXT && refit_is_us(it.object)) {
			counts = 1;
		} else if (counts) {
			it.address = refit_symbol_of(it.object, name);
			if (it.address) {
				break;
			}
		}
	}
	return it;
}

void *refit_symbol(void *scope, const char *name)
{
	return refit_definition(scope, name).address;
}
