#include "script_stack.h"

#include <sys/uio.h>

#include "prim.h"
#include "symbol.h"

/* Where the fields lie, in bytes. */
struct layout {
	/* Of a thread: its innermost frame, ... */
	uint16_t thread_frame;
	/* ... by way of a _PyCFrame, where that has it; NONE: directly. */
	uint16_t c_frame_frame;
	/* Of a frame. */
	uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
	/* Of a code object. */
	uint16_t code_file, code_name, code_lines, code_first_line,
		code_instructions;
	/* Of an object. */
	uint16_t type;
	/* Of bytes. */
	uint16_t bytes_size, bytes_data;
	/* Of a text that is one block. */
	uint16_t text_length, text_state, text_ascii, text_other;
};
#define NONE UINT16_MAX

static const struct layout of_3_11 = {
	56, 8, 32, 48, 56, 69, 112, 128, 136, 72, 184, 8, 16, 32, 16, 32, 48, 72,
};
static const struct layout of_3_12 = {
	56, 0, 0, 8, 56, 70, 112, 128, 136, 68, 192, 8, 16, 32, 16, 32, 40, 56,
};

/* Room for what lies before the last field of an object that is looked at. */
#define PART 256

/* A frame by which the interpreter calls itself from C, and those after it
 * (FRAME_OWNED_BY_CSTACK, since 3.14 FRAME_OWNED_BY_INTERPRETER). */
#define OWNED_BY_INTERPRETER 3

/* What the interpreter of this program has. */
static struct {
	void *(*thread)(void); /* PyGILState_GetThisThreadState */
	struct layout layout;
	uint64_t code_type, text_type, bytes_type;
	uint32_t unknown; /* its version, where the layout is not known */
} python;

/* ---- finding it --------------------------------------------------------- */

/* Where struct _Py_DebugOffsets has these fields, in words (pycore_debug_offsets.h). What
 * follows one in its group lies as far from it in each version. */
struct positions {
	uint8_t thread_frame; /* thread_state.current_frame */
	uint8_t previous;     /* interpreter_frame.previous */
	uint8_t file;	      /* code_object.filename */
	uint8_t type;	      /* pyobject.ob_type */
	uint8_t bytes_size;   /* bytes_object.ob_size */
	uint8_t text_state;   /* unicode_object.state */
};
static const struct positions in_3_13 = {23, 29, 35, 45, 65, 68};
static const struct positions in_3_14 = {26, 32, 40, 51, 75, 78};

/* A word of it, after the cookie and the version. */
#define FREE_THREADED 2

/* utf8_length and utf8 of PyCompactUnicodeObject (cpython/unicodeobject.h). */
#define BESIDE_ASCII 16

/* The layout that the interpreter publishes; `thread_frame` is NONE where it does not. */
static struct layout published(const uint64_t *words, const struct positions *at)
{
	static const union {
		char text[8];
		uint64_t word;
	} cookie = {{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'}};
	struct layout none = {.thread_frame = NONE};
	if (words[0] != cookie.word || words[FREE_THREADED] ||
	    words[at->text_state + 2] > PART - BESIDE_ASCII) {
		return none;
	}
	/* One that is too large is not before the end of its object. */
#define WORD(n) ((uint16_t)(words[n] < PART ? words[n] : NONE - 8))
	uint64_t thread_frame = words[at->thread_frame];
	struct layout it = {
		.thread_frame = thread_frame < NONE ? (uint16_t)thread_frame
						    : NONE,
		.c_frame_frame = NONE,
		.frame_previous = WORD(at->previous),
		.frame_code = WORD(at->previous + 1),
		.frame_instruction = WORD(at->previous + 2),
		.frame_owner = WORD(at->previous + 4),
		.code_file = WORD(at->file),
		.code_name = WORD(at->file + 2),
		.code_lines = WORD(at->file + 3),
		.code_first_line = WORD(at->file + 4),
		.code_instructions = WORD(at->file + 8),
		.type = WORD(at->type),
		.bytes_size = WORD(at->bytes_size),
		.bytes_data = WORD(at->bytes_size + 1),
		.text_state = WORD(at->text_state),
		.text_length = WORD(at->text_state + 1),
		.text_ascii = WORD(at->text_state + 2),
		.text_other = (uint16_t)(words[at->text_state + 2] +
					 BESIDE_ASCII),
	};
#undef WORD
	const uint16_t before[][2] = {
		{it.frame_previous, it.frame_owner},
		{it.frame_code, it.frame_owner},
		{it.frame_instruction, it.frame_owner},
		{it.code_file, it.code_instructions},
		{it.code_name, it.code_instructions},
		{it.code_lines, it.code_instructions},
		{it.code_first_line, it.code_instructions},
		{it.type, it.code_instructions},
		{it.type, it.bytes_data},
		{it.bytes_size, it.bytes_data},
		{it.type, it.text_ascii},
		{it.text_state, it.text_ascii},
		{it.text_length, it.text_ascii},
	};
	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		if (before[i][0] + 8 > before[i][1] || before[i][1] >= PART) {
			return none;
		}
	}
	return it;
}

void refit_find_interpreter(void)
{
	/* As sys.hexversion; since 3.11. */
	const unsigned long *version = refit_symbol(RTLD_DEFAULT, "Py_Version");
	if (!version) {
		return;
	}
	const uint64_t *runtime = refit_symbol(RTLD_DEFAULT, "_PyRuntime");
	python.code_type = (uintptr_t)refit_symbol(RTLD_DEFAULT, "PyCode_Type");
	python.text_type =
		(uintptr_t)refit_symbol(RTLD_DEFAULT, "PyUnicode_Type");
	python.bytes_type =
		(uintptr_t)refit_symbol(RTLD_DEFAULT, "PyBytes_Type");
	uint32_t minor = (uint32_t)(*version >> 16);
	if (minor == 0x30b) {
		python.layout = of_3_11;
	} else if (minor == 0x30c) {
		python.layout = of_3_12;
	} else if (minor == 0x30d && runtime) {
		python.layout = published(runtime, &in_3_13);
	} else if (minor == 0x30e && runtime) {
		python.layout = published(runtime, &in_3_14);
	}
	if (python.layout.thread_frame == NONE || !python.layout.thread_frame) {
		python.unknown = minor;
	}
	if (python.code_type && python.text_type && python.bytes_type) {
		*(void **)&python.thread = refit_symbol(
			RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	}
}

/* ---- reading ------------------------------------------------------------ */

/* So many stacks are read by the kernel, one after the other. Where all their objects
 * have the right types, the layout is that of this interpreter, and stacks are read
 * directly from then on: each read by the kernel takes a microsecond. */
#define PROOFS 16
static int proofs;

static int is_proven(void)
{
	return __atomic_load_n(&proofs, __ATOMIC_RELAXED) >= PROOFS;
}

static void proved(int is_right)
{
	if (!is_right) {
		__atomic_store_n(&proofs, 0, __ATOMIC_RELAXED);
	} else if (!is_proven()) {
		__atomic_fetch_add(&proofs, 1, __ATOMIC_RELAXED);
	}
}

/* Whether it could be read. */
static int read_at(void *to, uint64_t from, size_t size)
{
	if (is_proven()) {
		__builtin_memcpy(to, (const void *)(uintptr_t)from, size);
		return 1;
	}
	struct iovec local = {to, size};
	struct iovec remote = {(void *)(uintptr_t)from, size};
	long pid = prim_syscall(SYS_getpid, 0, 0, 0, 0);
	return prim_syscall6(SYS_process_vm_readv, pid, (long)&local, 1,
			     (long)&remote, 1, 0) == (long)size;
}

static uint64_t word_at(const char *part, size_t at)
{
	uint64_t word;
	__builtin_memcpy(&word, part + at, sizeof word);
	return word;
}

static uint32_t half_at(const char *part, size_t at)
{
	uint32_t half;
	__builtin_memcpy(&half, part + at, sizeof half);
	return half;
}

/* Bytes of the program, in their order. */
struct stream {
	uint64_t from, end; /* what is not read yet */
	unsigned next, size;
	unsigned char bytes[64];
};

/* -1 at its end. */
static int next_byte(struct stream *stream)
{
	if (stream->next == stream->size) {
		uint64_t left = stream->end - stream->from;
		stream->next = 0;
		stream->size = left < sizeof stream->bytes ? (unsigned)left
							   : sizeof stream->bytes;
		if (!left ||
		    !read_at(stream->bytes, stream->from, stream->size)) {
			stream->size = 0;
			stream->end = stream->from;
			return -1;
		}
		stream->from += stream->size;
	}
	return stream->bytes[stream->next++];
}

/* ---- lines -------------------------------------------------------------- */

/* Six bits in each byte, the lowest first; another one follows where bit 6 is set. */
static int32_t signed_number(struct stream *table)
{
	uint32_t value = 0;
	int byte = 0x40;
	for (unsigned shift = 0; byte > 0 && byte & 0x40 && shift < 32; shift += 6) {
		byte = next_byte(table);
		value |= byte < 0 ? 0 : ((uint32_t)byte & 0x3f) << shift;
	}
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* The line of the nth instruction; 0: it has none. (Objects/locations.md of CPython,
 * "location table".) */
static uint32_t line_of(uint64_t table, uint64_t size, uint64_t n, int32_t first)
{
	struct stream stream = {.from = table, .end = table + size};
	int32_t line = first;
	uint64_t end = 0; /* of the instructions so far */
	int entry = next_byte(&stream);
	while (entry >= 0) {
		int form = entry >> 3 & 15;
		if (form == 13 || form == 14) {
			line += signed_number(&stream);
		} else if (form >= 10 && form <= 12) {
			line += form - 10;
		}
		end += (uint64_t)(entry & 7) + 1;
		if (n < end) {
			return form == 15 || line < 0 ? 0 : (uint32_t)line;
		}
		do { /* columns */
			entry = next_byte(&stream);
		} while (entry >= 0 && !(entry & 0x80));
	}
	return 0;
}

/* ---- writing ------------------------------------------------------------ */

struct writer {
	char *to;
	uint64_t size, at; /* at > size: there was no room */
	int is_wrong; /* an object had another type than expected */
};

static void put(struct writer *writer, uint32_t byte)
{
	if (writer->at < writer->size) {
		writer->to[writer->at] = (char)byte;
		writer->at++;
	} else {
		writer->at = writer->size + 1;
	}
}

static void put_character(struct writer *writer, uint32_t c)
{
	if (c < 0x80) {
		put(writer, c ? c : ' ');
		return;
	}
	int rest = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
	put(writer, lead[rest] | c >> (6 * rest));
	while (rest--) {
		put(writer, 0x80 | (c >> (6 * rest) & 0x3f));
	}
}

static void put_number(struct writer *writer, uint32_t n)
{
	if (n >= 10) {
		put_number(writer, n / 10);
	}
	put(writer, '0' + n % 10);
}

static void put_plain(struct writer *writer, const char *text)
{
	while (*text) {
		put(writer, (unsigned char)*text++);
	}
}

/* Characters of a text: of a longer one its end, which tells files apart. */
#define MOST_CHARACTERS 400

static void put_text(struct writer *writer, uint64_t text)
{
	const struct layout *layout = &python.layout;
	char part[PART];
	if (!read_at(part, text, layout->text_ascii) ||
	    word_at(part, layout->type) != python.text_type) {
		writer->is_wrong = 1;
		put(writer, '?');
		return;
	}
	uint32_t state = half_at(part, layout->text_state);
	unsigned bytes = state >> 2 & 7; /* of a character */
	int is_one_block = state >> 5 & 1, is_ascii = state >> 6 & 1;
	uint64_t length = word_at(part, layout->text_length);
	if (!is_one_block || (bytes != 1 && bytes != 2 && bytes != 4)) {
		put(writer, '?');
		return;
	}
	uint64_t left_out =
		length > MOST_CHARACTERS ? length - MOST_CHARACTERS : 0;
	uint64_t from = text + (is_ascii ? layout->text_ascii
					 : layout->text_other);
	struct stream stream = {.from = from + left_out * bytes,
				.end = from + length * bytes};
	for (uint64_t i = left_out; i < length; i++) {
		uint32_t c = 0;
		for (unsigned n = 0; n < bytes; n++) {
			int byte = next_byte(&stream);
			c |= byte < 0 ? 0 : (uint32_t)byte << (8 * n);
		}
		put_character(writer, c);
	}
}

/* Whether there was room for it; nothing is put where this is no code object. */
static int put_function(struct writer *writer, uint64_t code, uint64_t instruction)
{
	const struct layout *layout = &python.layout;
	uint64_t begin = writer->at;
	char part[PART], table[PART];
	if (!read_at(part, code, layout->code_instructions) ||
	    word_at(part, layout->type) != python.code_type) {
		writer->is_wrong = 1;
		return 1;
	}
	put_text(writer, word_at(part, layout->code_name));
	put(writer, '\0');
	put_text(writer, word_at(part, layout->code_file));
	put(writer, '\0');
	uint64_t lines = word_at(part, layout->code_lines);
	uint32_t line = 0;
	if (read_at(table, lines, layout->bytes_data) &&
	    word_at(table, layout->type) == python.bytes_type) {
		line = line_of(lines + layout->bytes_data,
			       word_at(table, layout->bytes_size),
			       (instruction - code - layout->code_instructions) /
				       2,
			       (int32_t)half_at(part, layout->code_first_line));
	} else {
		writer->is_wrong = 1;
	}
	put_number(writer, line);
	put(writer, '\0');
	if (writer->at > writer->size) {
		writer->at = begin;
		return 0;
	}
	return 1;
}

/* ---- frames ------------------------------------------------------------- */

#define MOST_FRAMES 256

/* Bits that a _PyStackRef has beside the object's address (pycore_stackref.h). */
#define TAGS 7ull

static uint64_t put_unknown(char *to, uint64_t size)
{
	struct writer writer = {to, size, 0, 0};
	put_plain(&writer, "[Python ");
	put_number(&writer, python.unknown >> 8);
	put(&writer, '.');
	put_number(&writer, python.unknown & 0xff);
	put_plain(&writer, ": functions and lines are not known]");
	put(&writer, '\0');
	put(&writer, '\0');
	put(&writer, '0');
	put(&writer, '\0');
	return writer.at > size ? 0 : writer.at;
}

static uint64_t innermost(uint64_t thread)
{
	const struct layout *layout = &python.layout;
	uint64_t frame = 0;
	if (!read_at(&frame, thread + layout->thread_frame, sizeof frame) ||
	    layout->c_frame_frame == NONE) {
		return frame;
	}
	uint64_t c_frame = frame;
	return read_at(&frame, c_frame + layout->c_frame_frame, sizeof frame)
		       ? frame
		       : 0;
}

uint64_t refit_put_script_stack(char *to, uint64_t size)
{
	uint64_t thread = python.thread ? (uintptr_t)python.thread() : 0;
	if (!thread) {
		return 0;
	}
	if (python.unknown) {
		return put_unknown(to, size);
	}
	const struct layout *layout = &python.layout;
	struct writer writer = {to, size, 0, 0};
	uint64_t frame = innermost(thread);
	char part[PART];
	for (int n = 0; n < MOST_FRAMES && frame; n++) {
		if (!read_at(part, frame, layout->frame_owner + 1u)) {
			writer.is_wrong = 1;
			break;
		}
		if (part[layout->frame_owner] < OWNED_BY_INTERPRETER &&
		    !put_function(&writer,
				  word_at(part, layout->frame_code) & ~TAGS,
				  word_at(part, layout->frame_instruction))) {
			break;
		}
		frame = word_at(part, layout->frame_previous);
	}
	proved(!writer.is_wrong && writer.at > 0);
	return writer.at;
}
