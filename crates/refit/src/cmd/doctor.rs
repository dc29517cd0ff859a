//! `refit doctor`: what this machine allows, what of a program can be reached, and
//! who serves malloc in a process. It changes nothing, except that `--probe-disk`
//! writes a file.

use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

use refit_crash::filesystem::Kind;
use refit_crash::machine_lacks;
use refit_launch::answer_within;
use refit_report::{doctor, process};
use refit_run::machine::Machine;
use refit_run::process::{NoProcess, NotLoaded, Process};
use refit_run::reachability::{Reachability, find_in_path};

use super::print;
use crate::cli::DoctorArgs;

/// How long a process is looked at. Its memory may lie on a file system that does not
/// answer, or hold lists without end: it is written by others.
const TIMEOUT: Duration = Duration::from_secs(20);

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
            let lacks = machine_lacks(Kind::Ext4);
            (doctor::machine(&machine, &lacks), 0)
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
    let pid: u32 = match word.parse() {
        Ok(pid) if pid > 0 => pid,
        _ => {
            print::say(format_args!(
                "there is no process {word}\n  ps -e lists the processes; a command of this name: refit doctor ./{word}"
            ));
            return ExitCode::from(2);
        }
    };
    let answer = answer_within(TIMEOUT, || {
        let (code, text) = look(pid);
        [&[code], text.as_bytes()].concat()
    });
    match answer {
        Ok(Some(answer)) => {
            let text = String::from_utf8_lossy(&answer[1..]);
            if answer[0] == REFUSED {
                print::say(text);
                return ExitCode::from(REFUSED);
            }
            match print::result(&text) {
                Ok(()) => ExitCode::from(answer[0]),
                Err(error) => print::failed(&error, 2),
            }
        }
        Ok(None) => {
            print::say(format_args!(
                "process {pid} cannot be read: its memory gave no answer within {} s\n  a file that it maps may lie where nobody answers: cat /proc/{pid}/maps",
                TIMEOUT.as_secs()
            ));
            ExitCode::from(2)
        }
        Err(error) => {
            print::say(format_args!("cannot look at process {pid}: {error}"));
            ExitCode::from(2)
        }
    }
}

/// The exit code with a message in place of a page.
const REFUSED: u8 = 2;

/// The page of a process and the exit code, or a message with [`REFUSED`].
fn look(pid: u32) -> (u8, String) {
    match Process::look(pid) {
        Ok(found) => {
            let is_told = matches!(found.serving, Ok(_) | Err(NotLoaded::Static));
            (u8::from(!is_told), process::process(&found))
        }
        Err(error) => {
            let next = match &error {
                NoProcess::Thread { pid, .. } => format!("refit doctor {pid}"),
                NoProcess::Unreadable { .. } => format!("sudo refit doctor {pid}"),
                _ => "ps -e lists the processes: refit doctor PID".to_owned(),
            };
            (REFUSED, format!("{error}\n  {next}"))
        }
    }
}
