#!/bin/sh
# What is done with the Postfix below DIR, step by step; each is complete when the next one begins.
# usage: steps.sh DIR ADDRESS STEP…
set -eu
dir=$1 address=$2
shift 2

# Whoever waits for the daemons need not wait when a step has failed.
trap '[ $? = 0 ] || postfix -c "$dir/conf" stop' EXIT

# Daemons work in the queue's directory, whatever else they gave up.
daemons() { find /proc/[0-9]*/cwd -maxdepth 0 -lname "$dir/queue*" 2>/dev/null || :; }

# In the order in which a mail passes them, so that none slips by.
on_their_way() { (cd "$dir/queue" && find maildrop incoming active -type f); }

for step; do
	case $step in
	session) # refit's, for the test, which looks whether it goes away
		echo "$REFIT_SESSION" >"$dir/session" ;;
	start)
		postfix -c "$dir/conf" start ;;
	smtp:*) # so many mails
		smtp-source -s 10 -m "${step#smtp:}" -l 2000 -f a@refit.test -t b@example.test "$address:2525" ;;
	hold:*) # so many that the mail server keeps back
		smtp-source -s 5 -m "${step#hold:}" -l 2000 -f a@refit.test -t b@held.test "$address:2525" ;;
	purge) # and gives up
		postsuper -c "$dir/conf" -d ALL hold ;;
	by-hand:*) # To whom. postdrop is setgid, and so reads /etc/postfix whatever is in the environment.
		unshare --mount sh -eu -c '
			mount --bind "$1" /etc/postfix
			printf "Subject: by hand\n\nby hand\n" | sendmail -f a@refit.test "$2"
		' sh "$dir/conf" "${step#by-hand:}" ;;
	drain)
		# Twice: a mail about another is added unseen while the other one is still there.
		while [ -n "$(on_their_way && on_their_way)" ]; do sleep 0.05; done ;;
	stop) # postfix(1) waits for the master only
		postfix -c "$dir/conf" stop
		while [ -n "$(daemons)" ]; do sleep 0.05; done ;;
	*)
		echo "$0: no such step: $step" >&2
		exit 2 ;;
	esac
done
