#!/bin/sh
# Asks the table for all keys, in one process as Postfix's daemons do, and says how fast and how right its answers are.
set -eu
table=$(postconf -c "$REFIT_DIR/conf" -x -h virtual_alias_maps)
began=$(date +%s%N)
postmap -c "$REFIT_DIR/conf" -q - "$table" <keys >answers
ended=$(date +%s%N)
awk -v ns="$((ended - began))" '
	FILENAME == "keys" { asked++; next }
	FILENAME == "expected" { expected[FNR] = $0; known++; next }
	{ if ($0 == expected[FNR]) same++ }
	END {
		printf "lookups %.0f /s, %d asked\n", asked / ns * 1e9, asked
		# An answer too many shifts all that follow; so does one too few.
		printf "agreement %.4f %%\n", 100 * same / (FNR > known ? FNR : known)
	}' keys expected answers
