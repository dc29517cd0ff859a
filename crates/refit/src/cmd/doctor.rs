//! `refit doctor`: what this machine allows, and what of a program can be
//! reached. It changes nothing, except that `--probe-disk` writes a file.

use std::process::ExitCode;

use refit_report::doctor;
use refit_run::machine::Machine;
use refit_run::reachability::{Reachability, find_in_path};

use super::print;
use crate::cli::DoctorArgs;

pub fn main(args: &DoctorArgs) -> ExitCode {
    if let Some(directory) = &args.probe_disk {
        return super::probe::main(directory, args.json.as_deref());
    }
    let (text, code) = match &args.command {
        None => {
            let machine = Machine::look(args.allocator_dir.as_deref());
            (doctor::machine(&machine), 0)
        }
        Some(name) => match find_in_path(name, std::env::var_os("PATH").as_deref()) {
            Some(path) if !path.is_file() => {
                print::say(format_args!(
                    "{} is not a regular file\n  name a program: refit doctor sqlite3",
                    path.display()
                ));
                return ExitCode::from(2);
            }
            Some(path) => {
                let program = Reachability::of(&path);
                let code = u8::from(!program.is_reached());
                (doctor::program(&path, &program), code)
            }
            None => {
                print::say(format_args!(
                    "there is no command `{}`\n  give a path, or a name that is in PATH: refit doctor sqlite3",
                    name.display()
                ));
                return ExitCode::from(2);
            }
        },
    };
    match print::result(&text) {
        Ok(()) => ExitCode::from(code),
        Err(error) => print::failed(&error, 2),
    }
}
