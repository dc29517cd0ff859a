# For the other scripts.
if [ "$(sqlite3 data.db "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'")" = 1 ]; then
	sqlite3 -bail data.db ANALYZE
fi
