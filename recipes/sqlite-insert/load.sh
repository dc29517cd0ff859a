#!/bin/sh
# Each INSERT is a transaction of its own, as in a program that does not use BEGIN.
set -eu
. ./sqlite.conf
# -init: nobody's ~/.sqliterc.
exec sqlite3 -batch -bail -init /dev/null "$db" \
	'CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL)' '.read pragma.sql' '.read insert.sql'
