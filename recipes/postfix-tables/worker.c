/* The process that runs the script. Whatever the script does, the answer to a lookup that it did not answer is TEMP:
 * Postfix then tries again later. Only nil means that there is no such key.
 *
 * The GC arena is restored after each lookup: without that, mruby keeps every value that C code has seen. */
#define _GNU_SOURCE
#include "mapd.h"

#include <malloc.h>
#include <mruby.h>
#include <mruby/compile.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t used, most; /* bytes */

/* NULL makes mruby collect its garbage, and then raise NoMemoryError. */
static void *allocate(mrb_state *mrb, void *old, size_t size, void *data)
{
	(void)mrb, (void)data;
	size_t before = malloc_usable_size(old);
	if (size == 0) {
		free(old);
		used -= before;
		return NULL;
	}
	if (size > most || used - before > most - size)
		return NULL;
	void *new = realloc(old, size);
	if (new != NULL)
		used += malloc_usable_size(new) - before;
	return new;
}

struct reply {
	char text[1 + LONGEST_REPLY + 1];
	size_t length; /* with the first byte */
};

/* Control characters would end a line of somebody's log. */
static void say(struct reply *reply, const char *what, const char *text)
{
	int length = snprintf(reply->text + 1, 400, "TEMP %s%s", what, text);
	reply->length = 1 + (size_t)(length < 400 ? length : 399);
	for (size_t i = 1; i < reply->length; i++)
		if ((unsigned char)reply->text[i] < ' ')
			reply->text[i] = ' ';
}

struct call {
	const char *key;
	size_t length;
	struct reply *reply;
};

static mrb_value look_up(mrb_state *mrb, void *data)
{
	struct call *call = data;
	mrb_value key = mrb_str_new(mrb, call->key, (mrb_int)call->length);
	mrb_value found = mrb_funcall(mrb, mrb_top_self(mrb), "lookup", 1, key);
	if (mrb->exc != NULL)
		return mrb_obj_value(mrb->exc);
	struct reply *reply = call->reply;
	if (mrb_nil_p(found)) {
		reply->length = 1 + (size_t)sprintf(reply->text + 1, "NOTFOUND ");
	} else if (!mrb_string_p(found)) {
		say(reply, "the script returned neither a String nor nil, but a ", mrb_obj_classname(mrb, found));
	} else if (RSTRING_LEN(found) == 0) {
		/* Postfix would take it for a broken table. */
		say(reply, "the script returned an empty String; nil means not found", "");
	} else if (RSTRING_LEN(found) > LONGEST_REPLY - 3) {
		say(reply, "the script returned a String that is too long for Postfix", "");
	} else if (memchr(RSTRING_PTR(found), 0, (size_t)RSTRING_LEN(found)) != NULL) {
		say(reply, "the script returned a String with a NUL in it", "");
	} else {
		memcpy(reply->text + 1, "OK ", 3);
		memcpy(reply->text + 4, RSTRING_PTR(found), (size_t)RSTRING_LEN(found));
		reply->length = 4 + (size_t)RSTRING_LEN(found);
	}
	return mrb_nil_value();
}

struct failure {
	mrb_value exception;
	struct reply *reply;
};

static mrb_value inspect(mrb_state *mrb, void *data)
{
	struct failure *failure = data;
	mrb_value text = mrb_funcall(mrb, failure->exception, "inspect", 0);
	if (mrb->exc == NULL && mrb_string_p(text))
		say(failure->reply, "the script raised ", RSTRING_CSTR(mrb, text));
	return mrb_nil_value();
}

/* Runs it where no exception, not even one for want of memory, can leave it. */
static void guarded(mrb_state *mrb, mrb_protect_error_func *body, void *data, struct reply *reply)
{
	mrb_bool raised = 0;
	mrb_value value = mrb_protect_error(mrb, body, data, &raised);
	if (!raised && mrb->exc == NULL)
		return;
	struct failure failure = { raised ? value : mrb_obj_value(mrb->exc), reply };
	mrb->exc = NULL;
	say(reply, "the script raised an exception", "");
	mrb_protect_error(mrb, inspect, &failure, &raised);
	mrb->exc = NULL;
}

static mrb_value load(mrb_state *mrb, void *file)
{
	mrb_load_file(mrb, file);
	return mrb_nil_value();
}

_Noreturn void work(int channel, const char *script, const struct limits *limits)
{
	static struct reply reply;
	static char key[LONGEST_KEY];
	most = limits->memory;
	/* What a library allocates beside mruby's allocator. The parser's stack and the program itself need some as well. */
	struct rlimit space = { most + (128 << 20), most + (128 << 20) };
	setrlimit(RLIMIT_AS, &space);

	reply.text[0] = AGAIN;
	reply.length = 1;
	FILE *file = fopen(script, "r");
	mrb_state *mrb = mrb_open_allocf(allocate, NULL);
	if (mrb == NULL || file == NULL) {
		say(&reply, mrb == NULL ? "mruby does not start within the memory that is allowed" : "cannot read ", mrb == NULL ? "" : script);
	} else {
		guarded(mrb, load, file, &reply);
		if (reply.length == 1 && !mrb_respond_to(mrb, mrb_top_self(mrb), mrb_intern_cstr(mrb, "lookup")))
			say(&reply, "the script defines no method lookup(key)", "");
	}
	send(channel, reply.text, reply.length, MSG_NOSIGNAL);
	if (reply.length > 1)
		_exit(1);

	int arena = mrb_gc_arena_save(mrb);
	for (long done = 1;; done++) {
		ssize_t length = recv(channel, key, sizeof key, 0);
		if (length <= 0)
			_exit(0);
		struct call call = { key, (size_t)length, &reply };
		guarded(mrb, look_up, &call, &reply);
		mrb_gc_arena_restore(mrb, arena);
		if (used > most / 2)
			mrb_full_gc(mrb);
		int last = done >= limits->lookups || used > most / 2;
		reply.text[0] = last ? LAST : AGAIN;
		send(channel, reply.text, reply.length, MSG_NOSIGNAL);
		if (last)
			_exit(0);
	}
}
