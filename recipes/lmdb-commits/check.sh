#!/bin/sh
# Every item is there, once and in order.
set -eu
./commits read >items
seq "$REFIT_OPERATIONS" | cmp - items
echo "$REFIT_OPERATIONS commits"
