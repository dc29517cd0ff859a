#!/bin/sh
# Asks the table for all keys, in one process as Postfix's daemons do, and prints how fast its answers are, and how many
# of them are those of the table it stands for. What that means is a kind's own: randmap's answer has to be one of its
# members, upcase's is the same but for its case.
set -eu
table=$(postconf -c "$REFIT_DIR/conf" -x -h virtual_alias_maps)
began=$(date +%s%N)
postmap -c "$REFIT_DIR/conf" -q - "$table" <keys >answers
ended=$(date +%s%N)
case $table in
*randmap:*) agrees=member ;;
*upcase:*) agrees=upcase ;;
*) agrees=same ;;
esac
awk -v ns="$((ended - began))" -v agrees="$agrees" '
	BEGIN { FS = "\t" }
	FILENAME == "keys" { asked++; next }
	FILENAME == "expected" { key[FNR] = $1; box[FNR] = $2; known++; next }
	{
		answers++
		if ($1 != key[FNR]) next
		if (agrees == "member") right += $2 ~ /^box[123]@box\.test$/
		else right += $2 == (agrees == "upcase" ? toupper(box[FNR]) : box[FNR])
	}
	END {
		printf "lookups %.0f /s, %d asked\n", asked / ns * 1e9, asked
		# Only known keys are answered: an answer too many is as wrong as one too few, and shifts what follows.
		printf "agreement %.4f %%\n", 100 * right / (answers > known ? answers : known)
	}' keys expected answers
