#!/bin/sh
# Builds the libraries of a layout, and the program that calls them; the time is taken by the program alone.
# usage: load.sh LAYOUT CALLS
set -eu
layout=$1 calls=$2
# Where copies of libraries cost no disk time; unless nothing there may be executed.
work=$REFIT_TMPFS
printf '#!/bin/sh\n' >"$work/try"
chmod 755 "$work/try"
"$work/try" 2>/dev/null || work=$PWD

gcc -std=c11 -O2 -Wall -o calls "$REFIT_RECIPE/calls.c"
echo 'long method(long x) { return x + 1; }' >method.c
# Functions begin at 16 bytes, as -O2 has it.
gcc -std=c11 -O2 -Wall -fPIC -fno-asynchronous-unwind-tables -S method.c
case $layout in
merged)
	# 4000 times the same lines for the assembler; the compiler would need seconds for that. On arm64 they have labels.
	awk '{ line[NR] = $0 }
		END {
			for (i = 0; i < 4000; i++) for (n = 1; n <= NR; n++) {
				text = line[n]
				if (text !~ /\.file/) gsub(/method|\.LF[BE]0/, "&" i, text)
				print text
			}
		}' method.s >merged.s
	gcc -shared -nostdlib -o "$work/merged.so" merged.s
	;;
*)
	gcc -c method.s
	kinds=1
	case $layout in
	pages) how='-z max-page-size=4096' ;;
	# Each kind begins another cache line further into its page.
	staggered) kinds=64 how='-z max-page-size=4096' ;;
	# As ld did it until 2018.
	huge) how='-z max-page-size=0x200000 -z noseparate-code -z norelro' ;;
	esac
	kind=0
	while [ "$kind" -lt "$kinds" ]; do
		text=
		[ "$layout" != staggered ] || text=$(printf -- "-Ttext=0x%x" $((4096 + kind * 64)))
		# shellcheck disable=SC2086 # words on purpose
		ld -shared $how $text -o "$work/$layout.$kind.so" method.o
		kind=$((kind + 1))
	done
	;;
esac
./calls "$layout" "$calls" "$work" | tee calls.out
