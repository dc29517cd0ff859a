#!/bin/sh
# A Postfix of its own in $REFIT_DIR: configuration, queue, data and log. The system's own is neither asked nor changed.
set -eu
umask 022

# Postfix's master wants to be root. It is the root of a user namespace, which is daemon outside (start.sh), where one
# can be made: not in a chroot.
master=root
! unshare --user true 2>/dev/null || master=daemon

# Its daemons, the sink and the sender drop root, and have to find their way.
chmod 755 . "$REFIT_TMPFS"
mkdir conf data "$REFIT_TMPFS/sink"
chown "postfix:$(id -g $master)" data
chown nobody "$REFIT_TMPFS/sink"

# What `postfix check` would make, which takes most of two seconds; quick-start tells Postfix that it was done.
for queue in queue "$REFIT_TMPFS/queue"; do
	mkdir "$queue"
	(
		cd "$queue"
		touch quick-start
		mkdir pid
		mkdir -m 700 active bounce corrupt defer deferred flush hold incoming private saved trace
		mkdir -m 730 maildrop
		mkdir -m 710 public
		chown -R "$master:" .
		chown postfix active bounce corrupt defer deferred flush hold incoming private saved trace maildrop public
		chgrp postdrop maildrop public
	)
done

: >log
chown "$master:" log

for file in main.cf master.cf; do
	sed "s|@DIR@|$REFIT_DIR|g; s|@SMTP@|$REFIT_PORT_SMTP|; s|@SINK@|$REFIT_PORT_SINK|" "$REFIT_RECIPE/$file" >"conf/$file"
done

# 5 KB, no line of which is like another: the check compares.
awk 'BEGIN {
	print "From: a@refit.test\nSubject: refit\n"
	for (line = 1; line <= 64; line++) printf "%04d %073d\n", line, line
}' >mail
