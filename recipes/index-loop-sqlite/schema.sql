CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  status INTEGER NOT NULL,
  note TEXT NOT NULL
);
