#!/bin/sh
# Every mail reached the sink, once and whole, and none is left in the queue.
set -eu
queue=$(postconf -c "$REFIT_DIR/conf" -h queue_directory)

left=$(cd "$queue" && find maildrop incoming active deferred hold corrupt -type f | wc -l)
[ "$left" = 0 ] || {
	echo "$left mails are still in the queue" >&2
	exit 1
}

# As smtp-sink writes them: its own headers, then the mail as it came. Not as arguments: they may be too many.
cd "$REFIT_TMPFS/sink"
{
	cat "$REFIT_DIR/mail"
	find . -type f -name 'load.test.*' -exec cat {} +
} | awk -v count="$REFIT_OPERATIONS" '
	function wrong(what) { if (!failed++) print what >"/dev/stderr" }
	function ended() {
		sub(/\n+$/, "", body) # smtp-source and smtp-sink add one each
		if (!mails) sent = body
		else if (body != sent) wrong("mail " mail " is not what was sent")
	}
	/^X-Client-Addr: / { ended(); mail = body = ""; in_body = 0; next }
	/^X-Rcpt-Args: / {
		mail = $2
		gsub(/<|@.*/, "", mail)
		if (seen[mail]++) wrong("mail " mail " came twice")
		mails++
		next
	}
	in_body { body = body $0 "\n"; next }
	$0 == "" { in_body = 1 }
	END {
		ended()
		first = 0 in seen ? 0 : 1 # smtp-source -N of Postfix 3.10, of 3.7
		for (mail = first; mail < first + count; mail++) if (!(mail in seen)) wrong("mail " mail " is missing")
		if (mails != count) wrong(mails " mails came instead of " count)
		if (failed) exit 1
		print count " mails delivered"
	}'

# Gigabytes of mail would otherwise stay in memory until the whole comparison has ended.
find . -type f -delete
