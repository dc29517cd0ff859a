#!/bin/sh
set -eu
. ./path.sh
exec $AS_POSTGRES postgres
