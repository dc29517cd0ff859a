use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use std::path::Path;

use super::*;
use crate::System;

struct Tree {
    dir: tempfile::TempDir,
    system: System,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("etc")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join("etc").join(name), text).unwrap();
        }
        let system = System::new(Some(dir.path())).unwrap();
        Tree { dir, system }
    }

    fn place(&self, name: &str) -> Place {
        self.system.place(&format!("/etc/{name}")).unwrap()
    }

    fn edit(&self, name: &str, to: Option<&str>) -> Edit {
        let place = self.place(name);
        let from = place.state().unwrap();
        let to = to.map(|text| FileState::own(text.into()));
        Edit::stage(place, from, to.as_ref()).unwrap().unwrap()
    }

    /// All names in the directory, with their content.
    fn files(&self) -> Vec<(String, String)> {
        let mut names = self.place("x").names().unwrap();
        names.sort();
        let read = |name: &String| fs::read_to_string(self.dir.path().join("etc").join(name));
        let content = |name: String| (name.clone(), read(&name).unwrap());
        names.into_iter().map(content).collect()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join("etc").join(name), text).unwrap();
    }
}

fn files(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    all.iter().map(owned).collect()
}

#[test]
fn files_go_to_their_places_together() {
    let tree = Tree::new(&[("a", "1"), ("c", "3")]);
    let edits = vec![
        tree.edit("a", Some("one")),
        tree.edit("b", Some("two")),
        tree.edit("c", None),
    ];
    make_all(edits).unwrap();
    assert_eq!(tree.files(), files(&[("a", "one"), ("b", "two")]));
}

#[test]
fn what_somebody_wrote_meanwhile_stays_and_all_else_goes_back() {
    // Which file is edited, and what it holds then; the names are of a file that is replaced, one that is
    // made and one that is removed.
    for (name, text) in [("a", "edited"), ("b", "edited"), ("c", "edited")] {
        let tree = Tree::new(&[("a", "1"), ("c", "3")]);
        let edits = vec![
            tree.edit("a", Some("one")),
            tree.edit("b", Some("two")),
            tree.edit("c", None),
        ];
        tree.write(name, text);
        let expected = tree.files().into_iter();
        let expected: Vec<_> = expected
            .filter(|(name, _)| !name.starts_with('.'))
            .collect();
        let error = make_all(edits).unwrap_err();
        assert!(
            matches!(&error, FileError::Edited { path } if path.ends_with(name)),
            "{error}"
        );
        assert_eq!(tree.files(), expected, "{name}");
    }
}

#[test]
fn a_file_that_was_removed_or_is_a_link_now_was_edited() {
    let tree = Tree::new(&[("a", "1"), ("b", "2")]);
    let edits = vec![tree.edit("b", Some("two")), tree.edit("a", Some("one"))];
    fs::remove_file(tree.dir.path().join("etc/a")).unwrap();
    make_all(edits).unwrap_err();
    assert_eq!(tree.files(), files(&[("b", "2")]));
    let edit = tree.edit("b", Some("two"));
    fs::remove_file(tree.dir.path().join("etc/b")).unwrap();
    symlink("/etc/passwd", tree.dir.path().join("etc/b")).unwrap();
    make_all(vec![edit]).unwrap_err();
    let link = fs::read_link(tree.dir.path().join("etc/b")).unwrap();
    assert_eq!(link, Path::new("/etc/passwd"));
}

#[test]
fn the_last_of_many_edits_is_never_lost() {
    let tree = Tree::new(&[("a", "edit 0")]);
    let (path, new) = (tree.dir.path().join("etc/a"), tree.dir.path().join("new"));
    let ended = AtomicBool::new(false);
    let (edits, made, refused) = std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut count = 0;
            while !ended.load(Ordering::Relaxed) {
                count += 1;
                fs::write(&new, format!("edit {count}")).unwrap();
                fs::rename(&new, &path).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(count % 7 * 40));
            }
            count
        });
        let (mut made, mut refused) = (0, 0);
        while made + refused < 300 {
            let place = tree.place("a");
            let was = place.state().unwrap().unwrap();
            let mut bytes = was.bytes();
            if !bytes.ends_with(b" by refit") {
                bytes.extend(b" by refit");
                let to = was.with_bytes(bytes);
                let edit = Edit::stage(place, Some(was), Some(&to)).unwrap().unwrap();
                match make_all(vec![edit]) {
                    Ok(()) => made += 1,
                    Err(FileError::Edited { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        ended.store(true, Ordering::Relaxed);
        (editor.join().unwrap(), made, refused)
    });
    let last = format!("edit {edits}");
    let (_, text) = &tree.files()[0];
    assert!(
        text.strip_suffix(" by refit").unwrap_or(text) == last,
        "{text}, not {last}"
    );
    assert!(
        made > 0 && refused > 0,
        "{made} made, {refused} refused: nothing was tried"
    );
}

#[test]
fn no_name_leads_out_of_the_tree() {
    let outside = tempfile::tempdir().unwrap();
    let tree = Tree::new(&[]);
    let etc = tree.dir.path().join("etc");
    // Opened before somebody swaps the directory for a link.
    let place = tree.place("a");
    fs::rename(&etc, tree.dir.path().join("etc.away")).unwrap();
    symlink(outside.path(), &etc).unwrap();
    place.write(&FileState::own(b"x".to_vec())).unwrap();
    assert!(fs::exists(tree.dir.path().join("etc.away/a")).unwrap());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    let error = tree.system.place("/etc/a").unwrap_err();
    assert!(matches!(error, crate::Error::Link { .. }), "{error}");
}
