//! Opens the file named by the first argument, writes, and syncs it by File::sync_all. Static: no preload
//! reaches it.

use std::fs::OpenOptions;
use std::io::{Error, Write};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).expect("the file is named");
    let mut options = OpenOptions::new();
    let mut file = options.create(true).truncate(false).write(true).open(path)?;
    file.write_all(b"x")?;
    file.sync_all()
}
