/* A kind of Postfix lookup table as a library: upcase:NAME finds every key, in upper case.
 *
 * Postfix's daemons load it themselves. The interface is its own inner one, and changes from version to version without
 * a word; so it is built with the headers of one version, and refuses to work in another. */
#include <sys_defs.h>

#include <ctype.h>
#include <string.h>

#include <dict.h>
#include <vstring.h>

#include <mail_params.h>
#include <mail_version.h>

typedef struct {
	DICT dict; /* first: Postfix knows only this part */
	VSTRING *found;
} DICT_UPCASE;

static const char *upcase_lookup(DICT *dict, const char *key)
{
	VSTRING *found = ((DICT_UPCASE *)dict)->found;
	/* Of the last lookup only; what is left of an earlier one would fail this one. */
	dict->error = DICT_ERR_NONE;
	VSTRING_RESET(found);
	for (const char *at = key; *at != '\0'; at++)
		VSTRING_ADDCH(found, toupper((unsigned char)*at));
	VSTRING_TERMINATE(found);
	/* Postfix copies it before it asks again. */
	return vstring_str(found);
}

static void upcase_close(DICT *dict)
{
	vstring_free(((DICT_UPCASE *)dict)->found);
	dict_free(dict);
}

__attribute__((visibility("default"))) DICT *dict_upcase_open(const char *name, int open_flags, int dict_flags)
{
	if (strcmp(var_mail_version, MAIL_VERSION_NUMBER) != 0)
		return dict_surrogate("upcase", name, open_flags, dict_flags,
				      "upcase:%s is built for Postfix %s, not for %s: build it again", name,
				      MAIL_VERSION_NUMBER, var_mail_version);
	if (open_flags != O_RDONLY)
		return dict_surrogate("upcase", name, open_flags, dict_flags, "upcase:%s can only be read", name);

	DICT *dict = dict_alloc("upcase", name, sizeof(DICT_UPCASE));
	((DICT_UPCASE *)dict)->found = vstring_alloc(64);
	dict->lookup = upcase_lookup;
	dict->close = upcase_close;
	/* Whole keys only: cleanup would otherwise ask for a user without his domain as well. Nobody else can change what
	 * it answers, so it may be trusted where Postfix asks for that. */
	dict->flags = dict_flags | DICT_FLAG_PATTERN;
	dict->owner.status = DICT_OWNER_TRUSTED;
	return dict;
}
