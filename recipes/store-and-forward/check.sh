#!/bin/sh
# Every item is in box/ and whole, and spool/ is empty.
set -eu
[ -z "$(ls spool)" ] || { echo "left in spool/: $(ls spool | head -n 3)" >&2; exit 1; }
seq "$REFIT_OPERATIONS" >expected
python3 "$REFIT_RECIPE/whole.py" | sort -n | cmp - expected
echo "$REFIT_OPERATIONS items moved"
