#!/bin/sh
# The same answers from every JIT compiler, and MJIT did what its variant asks for: without a compiler or Ruby's header it
# would only have interpreted. RJIT has to have written code.
set -eu
fail() {
	echo "$*" >&2
	exit 1
}
. ./jit
compiled=$(grep -c '^JIT success' errors || :)
merged=$(grep -c '^JIT compaction .*: Compacted ' errors || :)
# Six of each handler, and those of the middlewares and the router.
methods=$((REFIT_OPERATIONS / 500 * 6))
case $options in
*--rjit*)
	# The smallest method of a handler takes more than 100 bytes.
	bytes=$(sed -n 's/^RJIT wrote \([0-9]*\) bytes of code$/\1/p' out)
	[ "${bytes:-0}" -ge $((methods * 100)) ] || fail "RJIT wrote only ${bytes:-0} bytes of code"
	;;
*--mjit*)
	[ "$compiled" -ge "$methods" ] ||
		fail "MJIT compiled only $compiled methods: $(grep -v '^JIT success' errors | head -n 3)"
	case $options in
	*--mjit-wait*) [ "$merged" = 0 ] || fail 'MJIT merged its libraries, though told to wait' ;;
	*) [ "$merged" -gt 0 ] || fail "MJIT has not merged its libraries: $(tail -n 3 errors)" ;;
	esac
	;;
esac
grep "^$REFIT_OPERATIONS requests, digest" out || fail "not $REFIT_OPERATIONS requests: $(grep digest out)"
sed -n 's/^cpu .*, result/the benchmark:/p' out
