//! What a refit that was killed left.

use std::fs;
use std::path::Path;

/// Removes directories of processes that were killed: `place` is how their paths begin, and the process id follows.
pub fn remove_left(place: &str) {
    let above = Path::new(place).parent().unwrap_or(Path::new("/"));
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let path = entry.path();
        let of = path.to_str().and_then(|path| path.strip_prefix(place));
        let pid = of.and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_what_no_process_has_any_more_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("own-").display().to_string();
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = format!("{place}{}", ended.id());
        let others = [
            format!("{place}{}", std::process::id()),
            format!("{place}x"),
            dir.path().join("2").display().to_string(),
        ];
        for path in others.iter().chain([&left]) {
            fs::create_dir(path).unwrap();
            fs::write(format!("{path}/main.cf"), "").unwrap();
        }
        remove_left(&place);
        assert!(!fs::exists(&left).unwrap());
        assert!(others.iter().all(|path| fs::exists(path).unwrap()));
    }
}
