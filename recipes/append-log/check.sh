#!/bin/sh
# Every line is there, once and in order.
set -eu
seq "$REFIT_OPERATIONS" | cmp - log
echo "$REFIT_OPERATIONS lines"
