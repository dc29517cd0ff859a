# Each line of a file of questions is a way to ask, a tab, and what is asked; answers go to stdout as QUESTION<TAB>ANSWER.
# An error is an answer too: its first line, without what varies.
answer() { # PREFIX QUESTION, the answer on stdin
	sed -n '1s/\t/ /g; 1p' | { IFS= read -r line || line=; printf '%s%s\t%s\n' "$1" "$2" "$line"; }
}
ask_date() { date --date="$1" '+%F %T' 2>&1 | answer 'date ' "$1"; }
ask_ruby() { ruby -rtime -rdate -e 'begin; puts eval(ARGV[0]).to_s; rescue => e; puts "#{e.class}: #{e.message}"; end' "$1" | answer 'ruby ' "$1"; }
ask_python() {
	python3 -c '
import sys, time
from datetime import datetime
try:
    print(eval(sys.argv[1]))
except Exception as error:
    print(f"{type(error).__name__}: {error}")' "$1" | answer 'python ' "$1"
}
ask_mariadb() { mariadb --defaults-file="$REFIT_DIR/my.cnf" -BN test -e "$1" 2>&1 | sed '/^-----/,/^-----/d; /^$/d; s/ at line 1//' | answer 'mariadb ' "$1"; }
ask_postgres() { psql -XAtq -c "$1" 2>&1 | answer 'postgres ' "$1"; }
