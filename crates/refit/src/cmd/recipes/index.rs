//! `refit recipes new NAME --from DATABASE`: a recipe of the indexes that its queries propose.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use refit_index::{Change, Made, from_database};
use refit_recipe::Recipe;
use refit_report::Page;

use crate::cmd::{print, trust};

pub fn new(name: &str, from: &Path, queries: Option<&Path>) -> Result<bool> {
    let to = Path::new(name);
    if to.symlink_metadata().is_ok() {
        bail!("{name} is there already; choose another name: refit recipes new NAME --from …");
    }
    let made = from_database(from, queries, name)?;
    let failed = || format!("cannot write {name}");
    made.folder.write(to).with_context(failed)?;
    // It holds somebody's data.
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).with_context(failed)?;
    trust::remember_own(&Recipe::find(&format!("./{name}"))?);
    print::result(&told(name, &made).text())?;
    Ok(true)
}

fn told(name: &str, made: &Made) -> Page {
    let mut page = Page::default();
    page.heading("queries");
    made.queries.iter().for_each(|query| page.line(1, query));
    for (title, change) in [
        ("indexes to try", Change::Add),
        ("indexes to drop", Change::Drop),
    ] {
        let of: Vec<_> = made
            .candidates
            .iter()
            .filter(|candidate| candidate.change == change)
            .collect();
        if of.is_empty() {
            continue;
        }
        page.heading(title);
        for candidate in of {
            page.line(1, candidate.setting());
            page.lines(3, &candidate.apply);
            page.line(3, &candidate.why);
        }
    }
    if !made.left_out.is_empty() {
        page.heading("left out");
        made.left_out.iter().for_each(|line| page.line(1, line));
    }
    page.heading(&format!(
        "{name} written, with a copy of the data; next: refit compare ./{name}"
    ));
    page
}
