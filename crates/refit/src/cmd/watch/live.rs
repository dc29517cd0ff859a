//! The live view on a terminal. What ratatui set is put back at the end, after a panic
//! (its hook) and after SIGTERM, SIGINT and SIGHUP, which are counted and not taken.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use refit_report::watch::{Detail, Mappings, Screen, View};
use refit_run::interruptions;
use refit_run::series::mapping_sizes;

use super::keys::{Key, keyboard, pressed};
use super::recording::{Recording, TICK};
use crate::cmd::print::has_lost_reader;

/// Shows it until `q`, an interruption, the end of the time, of the terminal or of all that is watched.
pub fn show(recording: &mut Recording, time: Option<Duration>) -> Result<()> {
    let terminal = ratatui::try_init().context("cannot use this terminal; --batch prints lines")?;
    // Dropped or restored in ratatui's way it prints what fails, and ends all with a panic where stderr is the
    // terminal that is gone.
    let mut terminal = ManuallyDrop::new(terminal);
    let ended = run(&mut terminal, recording, time);
    let restored = terminal.show_cursor().and(ratatui::try_restore());
    match has_lost_reader() {
        true => Ok(()),
        false => ended.and(restored.context("cannot put the terminal back")),
    }
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    recording: &mut Recording,
    time: Option<Duration>,
) -> Result<()> {
    let began = Instant::now();
    let keyboard = keyboard().context("cannot read the terminal")?;
    let mut screen = Screen::default();
    let mut detail = Detail::default();
    while interruptions() == 0 {
        let over = time.is_some_and(|time| began.elapsed() >= time);
        let mut changed = false;
        if recording.is_due() || over {
            recording.sample();
            changed = true;
        }
        if over || !recording.has_processes() {
            return Ok(());
        }
        let Some(keys) = pressed(&keyboard, TICK) else {
            return Ok(());
        };
        for key in keys {
            let Key::Of(input) = key else {
                return Ok(());
            };
            let before = screen.view();
            screen.take(input, &recording.series, &detail);
            if screen.view() != before {
                detail.mappings = mappings(screen.view());
                // An empty screen between two views. Not by Terminal::clear, which asks the
                // terminal where its cursor is.
                let empty = terminal.draw(|_| ());
                empty.context("cannot draw on the terminal")?;
            }
            changed = true;
        }
        recording.tick();
        if changed {
            if let View::Processes(group) = screen.view() {
                detail.members = recording.members(group);
            }
            let draw = |frame: &mut ratatui::Frame| screen.draw(frame, &recording.series, &detail);
            terminal.draw(draw).context("cannot draw on the terminal")?;
        }
    }
    Ok(())
}

/// Read once when a person looks into a process: it costs more than a sample.
fn mappings(view: View) -> Option<Mappings> {
    let View::Mappings(_, pid) = view else {
        return None;
    };
    Some(mapping_sizes(Path::new("/proc"), pid).map_err(|error| error.to_string()))
}
