#!/bin/sh
. ./path.sh
exec pg_isready --quiet
