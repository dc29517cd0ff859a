//! The table of packages, and what a word of it is called.

use crate::family::Family;

/// The page that holds the table, whose first column is headed `purpose`.
const PAGE: &str = include_str!("../../../docs/packages.md");

/// What stands in a cell where no package is known.
pub(crate) const NONE: &str = "-";

/// The cells of each row, that of the columns' names first.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let cells = |line: &'static str| -> Option<Vec<&'static str>> {
        let inner = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(inner.split('|').map(str::trim).collect())
    };
    let rows = PAGE.lines().filter_map(cells);
    rows.skip_while(|row| row[0] != "purpose")
}

fn column(columns: &[&str], family: Family) -> usize {
    let column = columns.iter().position(|name| *name == family.column());
    column.expect("every family has a column")
}

/// All names in a family's column.
pub(crate) fn all_names(family: Family) -> Vec<&'static str> {
    let mut rows = rows();
    let column = column(&rows.next().expect("the page has the table"), family);
    let rows = rows.filter(|row| row.len() > column && !row[column].starts_with(':'));
    let names = rows.flat_map(|row| row[column].split(' '));
    names.filter(|name| *name != NONE).collect()
}

/// The names of a purpose in a family, the preferred first; a word that is not in the table stands for itself.
#[must_use]
pub fn names(family: Family, word: &str) -> Vec<&str> {
    let mut rows = rows();
    let column = column(&rows.next().expect("the page has the table"), family);
    let row = rows.find(|row| row[0] == word);
    row.map_or_else(|| vec![word], |row| row[column].split(' ').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_cell_for_each_family() {
        let rows: Vec<Vec<&str>> = rows().collect();
        assert!(rows.len() > 20);
        let mut purposes = Vec::new();
        for row in &rows {
            assert_eq!(row.len(), rows[0].len(), "{row:?}");
            let is_clean = |cell: &&str| !cell.is_empty() && !cell.contains("  ");
            assert!(row.iter().all(is_clean), "{row:?}");
            assert!(!purposes.contains(&row[0]), "{} stands twice", row[0]);
            purposes.push(row[0]);
        }
    }

    #[test]
    fn a_word_of_the_table_has_the_familys_names_and_another_its_own() {
        assert_eq!(
            names(Family::Debian, "mimalloc"),
            ["libmimalloc3", "libmimalloc2.0"]
        );
        assert_eq!(names(Family::Suse, "tzdata"), ["timezone"]);
        assert_eq!(names(Family::Debian, "libfoo7"), ["libfoo7"]);
    }
}
