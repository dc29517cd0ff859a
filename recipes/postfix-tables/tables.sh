#!/bin/sh
# The users of load.test, numbered as smtp-source -N does it (Postfix 3.7 from 1, 3.10 from 0), for each kind of table, and what is asked of them: two known users, then one unknown.
set -eu
awk -v count="$REFIT_OPERATIONS" 'BEGIN {
	for (user = 0; user <= count; user++) {
		entry = sprintf("%d@load.test\tbox%d@box.test", user, user)
		print entry >"tables/users"
		print entry >(user % 2 ? "tables/odd" : "tables/even")
		printf "%d\tbox%d@box.test\n", user, user >"tables/boxes"
	}
	print "/^([0-9]+)@load\\.test$/ box$1@box.test" >"tables/rule"
	print "/^([0-9]+)@load\\.test$/ $1" >"tables/number"

	for (ask = 0; ask < 200 * count; ask++) {
		user = 1 + int(ask * 2 / 3) % count
		known = ask % 3 < 2
		printf "%d@%s.test\n", user, known ? "load" : "gone" >"keys"
		if (known) printf "%d@load.test\tbox%d@box.test\n", user, user >"expected"
	}
}'
for table in hash:users hash:odd hash:even hash:boxes lmdb:users; do
	postmap -c "$REFIT_DIR/conf" "${table%:*}:tables/${table#*:}"
done
