//! recipe.toml of somebody else, and the small texts that recipes hold.

use std::path::PathBuf;

use refit_fuzz::Target;
use refit_knobs::Variant;

use crate::folder::{Folder, FolderFile, shipped_names};
use crate::quantities::{parse_size, parse_time};
use crate::{Recipe, answers};

fn folder(text: &[u8]) -> Folder {
    let file = |path: &str, bytes: &[u8]| FolderFile {
        path: PathBuf::from(path),
        bytes: bytes.to_vec(),
        executable: true,
    };
    Folder {
        origin: Some(PathBuf::from("/a/recipe")),
        files: vec![file("check.sh", b"#!/bin/sh\n"), file("recipe.toml", text)],
    }
}

#[test]
fn recipes() {
    let shipped = shipped_names().filter_map(Folder::shipped);
    let texts: Vec<Vec<u8>> = shipped
        .filter_map(|folder| folder.file("recipe.toml").map(<[u8]>::to_vec))
        .collect();
    assert!(texts.len() > 20);
    let words = [
        "bound = \"newest-only\"",
        "class = \"bounded-loss\"",
        "[conf.a]",
        "[promise]",
        "[service]",
        "scripts = ",
        "also = ",
        "regex = \"(\"",
        "\"\"\"",
        "[[series]]",
        "= 99999999999s",
        "$REFIT_PORT_",
        "../",
        "sync=off",
        "1e309",
        "\\u0000",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "recipes")
        .seeds(texts)
        .words(words)
        .mutations(40)
        .memory(8 << 20, 1 << 10)
        .run(|input| match Recipe::new(folder(input)) {
            Ok(recipe) => {
                assert!(!recipe.name().is_empty() && !recipe.name().contains('/'));
                for variant in &recipe.file.variants {
                    if let Ok(parsed) = Variant::parse(&variant.settings) {
                        assert_eq!(Variant::parse(&parsed.to_string()), Ok(parsed));
                    }
                }
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("/a/recipe"), "names the file: {text}");
            }
        });
}

#[test]
fn times_and_sizes() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "times_and_sizes")
        .seeds(["90s", "3m", "500ms", "1e3h", "512M", "2G", ".5s"])
        .words(["ms", "min", "K", "M", "G", "e308", "inf", "nan", "-"])
        .longest(64)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            if let Some(time) = parse_time(&text) {
                assert!(!time.is_zero());
            }
            match parse_size(&text) {
                Ok(bytes) => assert!(bytes > 0 && bytes % 4096 == 0),
                Err(error) => assert!(error.contains(&format!("{text:?}"))),
            }
        });
}

#[test]
fn exact_answers() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "exact_answers")
        .seeds(["a\t1\nb\t2\n", "v\ta\t1\nv\tb\t2\nw\ta\t3\n"])
        .words(["\t", "\n", "\r\n"])
        .longest(2048)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            // A carriage return before a line feed is none of the answer's; any other is.
            if let (Ok(all), false) = (answers::read(&text), text.contains('\r')) {
                let print = |one: &crate::records::AnswerRecord| {
                    format!("{}\t{}\n", one.question, one.answer)
                };
                let printed: String = all.iter().map(print).collect();
                assert_eq!(answers::read(&printed).as_ref(), Ok(&all));
                assert_eq!(answers::difference(&all, &all), None);
            }
            let _ = answers::read_note(&text);
        });
}
