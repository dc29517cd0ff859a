//! Random schemas of SQLite: tables that refer to each other, with columns of all kinds, indexes, views and triggers.

use crate::random::Random;

/// Names of tables: two schemas have some of them in common.
const TABLES: [&str; 4] = ["a", "b", "Order", "d e"];

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// The definition of a column.
fn column(random: &mut Random, number: u64) -> String {
    let kind = ["INTEGER", "TEXT", "", "REAL", "VARCHAR(9)"][random.below(5) as usize];
    let more = match random.below(12) {
        0 => " NOT NULL DEFAULT 3",
        1 => " DEFAULT 'x, (y'",
        2 => " UNIQUE",
        3 => " COLLATE NOCASE",
        4 => " DEFAULT (1 + 2)",
        5 => " DEFAULT CURRENT_DATE",
        6 => " CHECK (length(\"id\") < 100)",
        7 => " REFERENCES \"a\" (\"id\") ON DELETE CASCADE",
        8 => return format!("\"c{number}\" {kind} AS (\"id\" + {number})"),
        9 => return format!("\"c{number}\" {kind} GENERATED ALWAYS AS (\"id\" * 2) STORED"),
        _ => "",
    };
    format!("\"c{number}\" {kind}{more}")
}

/// All statements of a schema, with rows or without.
pub fn schema(random: &mut Random, with_rows: bool) -> String {
    let mut text = String::new();
    for table in TABLES {
        if random.below(5) == 0 && table != "a" {
            continue;
        }
        let id = [
            "INTEGER PRIMARY KEY",
            "INTEGER PRIMARY KEY AUTOINCREMENT",
            "INTEGER UNIQUE",
        ];
        let mut parts = vec![format!("\"id\" {}", id[random.below(3) as usize])];
        let mut numbers: Vec<u64> = (0..6).filter(|_| random.below(2) == 0).collect();
        if random.below(3) == 0 {
            numbers.reverse();
        }
        for number in &numbers {
            parts.push(column(random, *number));
        }
        if let (Some(first), 0) = (numbers.first(), random.below(4)) {
            parts.push(format!("CONSTRAINT pair UNIQUE (\"id\", \"c{first}\")"));
        }
        if random.below(4) == 0 {
            parts.push("CHECK (\"id\" > -5)".to_owned());
        }
        let name = quoted(table);
        text += &format!("CREATE TABLE {name} ({});\n", parts.join(", "));
        for number in numbers {
            if random.below(3) == 0 {
                let unique = if random.below(4) == 0 { "UNIQUE " } else { "" };
                let place = [" DESC", "", " COLLATE NOCASE"][random.below(3) as usize];
                let part = if random.below(3) == 0 {
                    " WHERE \"id\" > 1"
                } else {
                    ""
                };
                let index = quoted(&format!("i {table} {number}"));
                text += &format!(
                    "CREATE {unique}INDEX {index} ON {name} (\"c{number}\"{place}){part};\n"
                );
            }
        }
        if random.below(3) == 0 {
            let view = quoted(&format!("v {table}"));
            text += &format!(
                "CREATE VIEW {view} AS SELECT * FROM {name} WHERE \"id\" > {};\n",
                random.below(3)
            );
        }
        if random.below(3) == 0 {
            let trigger = quoted(&format!("t {table}"));
            let when = ["AFTER INSERT", "BEFORE DELETE", "AFTER UPDATE"][random.below(3) as usize];
            text += &format!(
                "CREATE TRIGGER {trigger} {when} ON {name} BEGIN UPDATE \"a\" SET \"id\" = \"id\" WHERE 0; END;\n"
            );
        }
        if with_rows {
            for row in 1..=random.below(4) {
                text += &format!("INSERT OR IGNORE INTO {name} (\"id\") VALUES ({row});\n");
            }
        }
    }
    text
}
