//! A file that several services' changes edit, as Postfix's master.cf is by one change for each daemon: each record has
//! the file as it is and as it would be without that record's own lines.

use crate::store::Store;
use crate::three_way::left;
use crate::{Error, FileEdit, FileState, Record};

/// Tells the records of other services what became of files that they edit too. `changed`: each file as it was
/// and as it is. Where a file was not as such a record has it, somebody else edited it, and `status` goes on to tell so.
///
/// # Errors
/// As of [`Store`]. A record that was not told reports an edit of somebody else, which its revert keeps.
pub fn tell_others(store: &Store, service: &str, changed: &[FileEdit]) -> Result<(), Error> {
    let is_other = |record: &Record| record.change.service != service;
    for mut record in store.all()?.readable.into_iter().filter(is_other) {
        let mut is_told = false;
        for edit in changed {
            if let (Some(was), Some(is)) = (&edit.before, &edit.after) {
                is_told |= tell(&mut record, &edit.path, was, is);
            }
        }
        if is_told {
            store.save(&record)?;
        }
    }
    Ok(())
}

/// Whether the record has the file, and has its new form now.
fn tell(record: &mut Record, path: &str, was: &FileState, is: &FileState) -> bool {
    let change = &record.change;
    let Some(at) = change.files.iter().position(|edit| edit.path == path) else {
        return false;
    };
    let edit = &change.files[at];
    let (Some(before), Some(after)) = (edit.before.clone(), &edit.after) else {
        return false;
    };
    if after != was {
        return false;
    }
    let Some(without) = left(change, &before, after, is) else {
        return false;
    };
    if let Some(first) = &mut record.first {
        tell(first, path, &before, &without);
    }
    let edit = &mut record.change.files[at];
    (edit.before, edit.after) = (Some(without), Some(is.clone()));
    true
}
