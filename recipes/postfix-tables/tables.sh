#!/bin/sh
# The users of load.test, once for each kind of table, and what is asked of them: two known users, then one unknown.
set -eu
awk -v count="$REFIT_OPERATIONS" 'BEGIN {
	for (user = 1; user <= count; user++) {
		printf "%d@load.test\tbox%d@box.test\n", user, user >"tables/users"
	}
	for (ask = 0; ask < 200 * count; ask++) {
		user = 1 + int(ask * 2 / 3) % count
		if (ask % 3 == 2) printf "%d@gone.test\n", user >"keys"
		else {
			printf "%d@load.test\n", user >"keys"
			printf "%d@load.test\tbox%d@box.test\n", user, user >"expected"
		}
	}
}'
for kind in hash lmdb; do
	postmap -c "$REFIT_DIR/conf" "$kind:tables/users"
done
