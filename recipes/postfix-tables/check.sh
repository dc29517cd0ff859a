#!/bin/sh
# Each mail reached the box that the table names for its recipient, once and whole, and none is left in the queue.
# upcase changes the case of that box; randmap takes one of three boxes by chance, so each of them has to have some.
set -eu
left=$(cd "$REFIT_DIR/queue" && find maildrop incoming active deferred hold corrupt -type f | wc -l)
[ "$left" = 0 ] || {
	echo "$left mails are still in the queue" >&2
	exit 1
}

# As smtp-sink writes them: its own headers, then the mail as it came. Not as arguments: they may be too many.
cd "$REFIT_TMPFS/sink"
{
	cat "$REFIT_DIR/mail"
	find . -type f -name 'load.test.*' -exec cat {} +
} | awk -v count="$REFIT_OPERATIONS" -v by_chance="$(postconf -c "$REFIT_DIR/conf" -h virtual_alias_maps | grep -c randmap:)" '
	function wrong(what) { if (!failed++) print what >"/dev/stderr" }
	function ended() {
		sub(/\n+$/, "", body) # smtp-source and smtp-sink add one each
		if (!mails) sent = body
		else if (body != sent) wrong("the mail to " box " is not what was sent")
	}
	/^X-Client-Addr: / { ended(); box = body = ""; in_body = 0; next }
	/^X-Rcpt-Args: / {
		box = tolower($2)
		gsub(/[<>]/, "", box)
		if (seen[box]++ && !by_chance) wrong("a second mail to " box)
		mails++
		next
	}
	in_body { body = body $0 "\n"; next }
	$0 == "" { in_body = 1 }
	END {
		ended()
		boxes = by_chance ? 3 : count
		first = !by_chance && ("box0@box.test" in seen) ? 0 : 1 # smtp-source -N of Postfix 3.10, of 3.7
		for (i = first; i < first + boxes; i++) if (!(("box" i "@box.test") in seen)) wrong("no mail to box" i "@box.test")
		for (box in seen) if (boxes-- <= 0) wrong("mail to another box")
		if (mails != count) wrong(mails " mails came instead of " count)
		if (failed) exit 1
		print count " mails delivered, each to a box that the table names"
	}'

# Gigabytes of mail would otherwise stay in memory until the whole comparison has ended.
find . -type f -delete
