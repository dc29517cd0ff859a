#!/bin/sh
# A package of many small files. It is made here and not fetched: no network at run time, the same bytes everywhere,
# and no script of its own that would want a whole system around it.
set -eu

# On tmpfs, and deleted there: what is deleted on a disk can slow what is made next.
tree=$REFIT_TMPFS/package
mkdir -p "$tree/DEBIAN" "$tree/usr/share/refit-many"
cat >"$tree/DEBIAN/control" <<'END'
Package: refit-many
Version: 1
Architecture: all
Maintainer: nobody <nobody@refit.test>
Description: many small files
END
# 0.5 to 7 KiB in a fixed order, as in a package of headers or manual pages.
awk -v count="$REFIT_OPERATIONS" -v top="$tree/usr/share/refit-many" 'BEGIN {
	for (i = 1; i <= count; i++) {
		if (i % 100 == 1) {
			dir = sprintf("%s/%03d", top, i / 100)
			if (system("mkdir " dir) != 0) exit 1
		}
		file = sprintf("%s/%06d", dir, i)
		lines = 8 + i * 37 % 120
		for (line = 1; line <= lines; line++)
			printf "line %03d of file %06d, and no other file holds it\n", line, i >file
		close(file)
	}
}'
(cd "$tree" && find usr -type f -exec md5sum {} + | sort) >expected
# -Znone: how fast files are written is the question, not how fast they are uncompressed.
dpkg-deb --root-owner-group -Znone --build "$tree" many.deb >/dev/null
rm -r "$tree"

# dpkg reads /etc/dpkg/dpkg.cfg.d first, and images for containers say force-unsafe-io there: so say either.
cat >dpkg.conf <<END
root='$REFIT_DIR/root'
io=--refuse-unsafe-io
END
