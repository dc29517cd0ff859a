#!/bin/sh
set -eu
echo options=--disable-jit >jit
mkdir tmp
