//! Edits of master.cf.

use refit_servers::postfix::Entry;

/// The file with another program for these services. All other bytes stay.
pub fn with_command(file: &[u8], entries: &[Entry], command: &str) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for entry in entries.iter().rev() {
        bytes.splice(entry.command_at.clone(), command.bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use refit_servers::postfix::entries;

    use super::*;

    #[test]
    fn only_the_command_is_another() {
        let file = "# cleanup unix n - y - 0 cleanup\n\
            cleanup   unix  n       -       y       -       0       cleanup\n\
            smtp      unix  -       -       y       -       -  \tsmtp\n\
            second unix - - y\n  - 0\n# between\n    cleanup -v\n";
        let mut all = entries(file.as_bytes());
        all.retain(|entry| entry.command() == "cleanup");
        let text = String::from_utf8(with_command(file.as_bytes(), &all, "../x")).expect("text");
        let as_before = file
            .replace("0       cleanup\n", "0       ../x\n")
            .replace("    cleanup -v", "    ../x -v");
        assert_eq!(text, as_before);
    }
}
