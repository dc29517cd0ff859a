//! `refit doctor`: what this machine allows, what of a program can be reached, and
//! who serves malloc in a process. It changes nothing, except that `--probe-disk`
//! writes a file.

use std::ffi::OsStr;
use std::process::ExitCode;

use refit_report::{doctor, process};
use refit_run::machine::Machine;
use refit_run::process::{NoProcess, NotLoaded, Process};
use refit_run::reachability::{Reachability, find_in_path};

use super::print;
use crate::cli::DoctorArgs;

pub fn main(args: &DoctorArgs) -> ExitCode {
    if let Some(directory) = &args.probe_disk {
        return super::probe::main(directory, args.json.as_deref());
    }
    if let Some(pid) = args.command.as_deref().and_then(pid) {
        return running(pid);
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

/// A word of digits is the number of a process; a command of that name has a path.
fn pid(word: &OsStr) -> Option<&str> {
    let word = word.to_str()?;
    (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
}

fn running(word: &str) -> ExitCode {
    // No process has a number that is not one of 31 bits (proc(5), pid_max).
    let looked = match word.parse() {
        Ok(pid) if pid > 0 => Process::look(pid),
        _ => {
            print::say(format_args!(
                "there is no process {word}\n  ps -e lists the processes; a command of this name: refit doctor ./{word}"
            ));
            return ExitCode::from(2);
        }
    };
    match looked {
        Ok(found) => {
            let is_told = matches!(found.serving, Ok(_) | Err(NotLoaded::Static));
            match print::result(&process::process(&found)) {
                Ok(()) => ExitCode::from(u8::from(!is_told)),
                Err(error) => print::failed(&error, 2),
            }
        }
        Err(error) => {
            let next = match &error {
                NoProcess::Thread { pid, .. } => format!("refit doctor {pid}"),
                NoProcess::Unreadable { .. } => format!("sudo refit doctor {word}"),
                _ => "ps -e lists the processes: refit doctor PID".to_owned(),
            };
            print::say(format_args!("{error}\n  {next}"));
            ExitCode::from(2)
        }
    }
}
