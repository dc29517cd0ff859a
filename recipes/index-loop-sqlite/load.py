"""Orders come in, a hundred to a transaction; after each hundred a customer looks at his last twenty.

usage: load.py COUNT FIRST: so many orders after row FIRST of ./shop.db, and what was read to ./answers.
"""

import sqlite3
import sys
from time import perf_counter

READ = "SELECT id, created_at, status FROM orders WHERE customer_id = ? ORDER BY created_at DESC LIMIT 20"
WRITE = "INSERT INTO orders (customer_id, created_at, status, note) VALUES (?, datetime('2026-02-01', ? || ' seconds'), ?, ?)"


def main(count, first):
    shop = sqlite3.connect("shop.db", isolation_level=None)
    # The whole file and its indexes: a plan that reads every row reads memory, and not a disk.
    shop.execute("PRAGMA cache_size = -262144")
    shop.execute("SELECT count(note) FROM orders").fetchone()
    read = write = reads = 0
    with open("answers", "w") as answers:
        for i in range(1, count + 1):
            began = perf_counter()
            if i % 100 == 1:
                shop.execute("BEGIN")
            shop.execute(WRITE, (i * 7919 % 5000, i, i % 5, f"order {first + i} of a shop"))
            if i % 100 != 0 and i != count:
                write += perf_counter() - began
                continue
            shop.execute("COMMIT")
            write += perf_counter() - began
            began = perf_counter()
            rows = shop.execute(READ, (i * 31 % 5000,)).fetchall()
            read += perf_counter() - began
            reads += 1
            answers.writelines(f"{row}\n" for row in rows)
    pages, size = (shop.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    shop.close()
    print(f"read {read / reads * 1e6:.1f} us, write {write / count * 1e6:.2f} us")
    print(f"indexes {pages * size}")


main(int(sys.argv[1]), int(sys.argv[2]))
