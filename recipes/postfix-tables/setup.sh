#!/bin/sh
# A Postfix of its own in $REFIT_DIR: configuration, queue, data, log and tables. The system's own is neither asked nor
# changed.
set -eu

# Its daemons, the sink and the sender drop root, and have to find their way.
chmod 755 . "$REFIT_TMPFS"
mkdir conf meta data queue tables "$REFIT_TMPFS/sink"
chown postfix data
chown nobody "$REFIT_TMPFS/sink"

# What `postfix check` would make, which takes most of two seconds; quick-start tells Postfix that it was done.
(
	cd queue
	touch quick-start
	mkdir pid
	mkdir -m 700 active bounce corrupt defer deferred flush hold incoming private saved trace
	mkdir -m 730 maildrop
	mkdir -m 710 public
	chown postfix active bounce corrupt defer deferred flush hold incoming private saved trace maildrop public
	chgrp postdrop maildrop public
)

for file in main.cf master.cf; do
	sed "s|@DIR@|$REFIT_DIR|; s|@SMTP@|$REFIT_PORT_SMTP|; s|@SINK@|$REFIT_PORT_SINK|" "$REFIT_RECIPE/$file" >"conf/$file"
done
# Since Postfix 3.11 each kind of table has a file of its own in dynamicmaps.cf.d.
cp -R "$(postconf -d -h meta_directory)"/dynamicmaps.cf* meta/

awk 'BEGIN {
	print "From: a@refit.test\nSubject: refit\n"
	for (line = 1; line <= 16; line++) printf "%04d %073d\n", line, line
}' >mail

exec sh "$REFIT_RECIPE/tables.sh"
