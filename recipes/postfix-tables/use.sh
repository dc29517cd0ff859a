#!/bin/sh
# Makes this kind of table the one that Postfix asks, with all that it needs: one line of main.cf.
# usage: use.sh KIND
set -eu
tables=$REFIT_DIR/tables
users=hash:$tables/users
case $1 in
hash | lmdb) table=$1:$tables/users ;;
pcre) table=pcre:$tables/rule ;;
# As long a line as there are users: main.cf itself is the table.
inline) table="inline:{ $(awk -F '\t' '{ printf "{%s = %s} ", $1, $2 }' tables/users)}" ;;
# The users in two tables; where both know one, the answers are joined by a comma.
unionmap) table="unionmap:{hash:$tables/odd, hash:$tables/even}" ;;
# A user's number, and then by number his box: what the one finds the next one is asked.
pipemap) table="pipemap:{pcre:$tables/number, hash:$tables/boxes}" ;;
# Known users only, then one of three boxes by chance.
randmap) table="pipemap:{$users, randmap:{box1@box.test, box2@box.test, box3@box.test}}" ;;
upcase)
	headers=$(sh "$REFIT_RECIPE/headers.sh")
	gcc -std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -Wall -DLINUX6 \
		-isystem "$headers/src/util" -isystem "$headers/src/global" -o upcase.so "$REFIT_RECIPE/upcase.c"
	# Once: of a second line every daemon warns, and postlogd, which starts with its socket full of others' lines, would
	# wait for itself to read its own.
	grep -q '^upcase' meta/dynamicmaps.cf ||
		printf 'upcase\t%s\tdict_upcase_open\n' "$REFIT_DIR/upcase.so" >>meta/dynamicmaps.cf
	table="pipemap:{$users, upcase:of-what-was-found}"
	;;
script)
	gcc -std=c11 -O2 -Wall -o mapd "$REFIT_RECIPE/mapd.c" "$REFIT_RECIPE/worker.c" -lmruby -lm
	cp "$REFIT_RECIPE/users.rb" .
	table=socketmap:inet:127.0.0.1:$REFIT_PORT_MAPD:users
	;;
*)
	echo "use.sh: no kind $1" >&2
	exit 2
	;;
esac
# What start.sh has to start first.
if [ "$1" = script ]; then touch use-mapd; else rm -f use-mapd; fi
postconf -c "$REFIT_DIR/conf" -e "virtual_alias_maps = $table"
