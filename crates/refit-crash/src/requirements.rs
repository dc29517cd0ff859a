//! What the machine has to have: root, FUSE, loop devices, namespaces, and programs.

use std::env;
use std::fs::File;
use std::path::Path;

use refit_packages::how_to_install;

use crate::filesystem::Kind;
use crate::isolated::isolated;
use crate::request::Request;

/// What the machine lacks for this request.
#[must_use]
pub fn missing(request: &Request) -> Vec<String> {
    let mut missing = machine_lacks(request.filesystem.kind);
    if let Some(program) = request.check.program()
        && !is_installed(&program)
    {
        missing.push(format!(
            "{} is not installed; the check needs it",
            program.display()
        ));
    }
    missing
}

/// What the machine lacks for any simulated power cut.
#[must_use]
pub fn machine_lacks(kind: Kind) -> Vec<String> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("root is needed to mount file systems".to_owned());
        return missing;
    }
    for (path, what) in [("/dev/fuse", "FUSE"), ("/dev/loop-control", "loop devices")] {
        let opened = File::options().read(true).write(true).open(path);
        if let Err(error) = opened {
            missing.push(format!("{what}: {path}: {error}"));
        }
    }
    if let Err(error) = isolated(|| Ok(())) {
        missing.push(format!(
            "{error} ({})",
            if Path::new("/proc/self").exists() {
                "in a container: docker run --privileged, podman run --privileged"
            } else {
                "mount -t proc proc /proc"
            }
        ));
    }
    let mkfs = format!("mkfs.{}", kind.name());
    if !is_installed(mkfs.as_ref()) {
        missing.push(format!(
            "{mkfs} is not installed; {}",
            how_to_install(&[kind.package()])
        ));
    }
    missing
}

fn is_installed(program: &Path) -> bool {
    if program.is_absolute() {
        return program.exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).exists())
}
