//! Puts the files of recipes/ into the program, so that one binary is all there is to install.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn files_below(dir: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)
        .expect("the directory is part of the source")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files_below(&path, files);
        } else if !path.ends_with("picture.svg") {
            // Pictures are for those who read the source.
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
}

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let recipes = manifest.join("../../recipes");
    println!("cargo::rerun-if-changed={}", recipes.display());
    let mut folders: Vec<PathBuf> = fs::read_dir(&recipes)
        .expect("recipes/ is part of the source")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.join("recipe.toml").is_file())
        .collect();
    folders.sort();
    let mut code = "static SHIPPED: &[(&str, &[ShippedFile])] = &[\n".to_owned();
    for folder in folders {
        let name = folder.file_name().expect("it has one").to_string_lossy();
        let _ = writeln!(code, "({name:?}, &[");
        let mut files = Vec::new();
        files_below(&folder, &mut files);
        for file in files {
            let path = file.strip_prefix(&folder).expect("it lies below");
            let mode = fs::metadata(&file)
                .expect("it is there")
                .permissions()
                .mode();
            let _ = writeln!(
                code,
                "ShippedFile {{ path: {path:?}, bytes: include_bytes!({file:?}), executable: {} }},",
                mode & 0o111 != 0
            );
        }
        code.push_str("]),\n");
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("shipped.rs"), code).expect("OUT_DIR can be written");
}
