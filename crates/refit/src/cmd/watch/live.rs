//! The live view on a terminal. What ratatui set is put back at the end, after a panic
//! (its hook) and after SIGTERM, SIGINT and SIGHUP, which are counted and not taken.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use refit_report::watch::{Detail, Input, Mappings, Screen, View};
use refit_run::interruptions;
use refit_run::series::mapping_sizes;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::recording::{Recording, TICK};

/// Shows it until `q`, an interruption, the end of the time or of all that is watched.
pub fn show(recording: &mut Recording, time: Option<Duration>) -> Result<()> {
    let mut terminal =
        ratatui::try_init().context("cannot use this terminal; --batch prints lines")?;
    let ended = run(&mut terminal, recording, time);
    ratatui::restore();
    ended
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
        if !is_there_after(&keyboard, TICK) {
            return Ok(());
        }
        if poll(Duration::ZERO).context("cannot read the terminal")? {
            match read().context("cannot read the terminal")? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    let Some(input) = input(key) else {
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
                event => changed |= matches!(event, Event::Resize(..)),
            }
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

/// `None` ends it.
fn input(key: KeyEvent) -> Option<Input> {
    Some(match key.code {
        KeyCode::Char('q') => return None,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return None,
        KeyCode::Up | KeyCode::Char('k') => Input::Up,
        KeyCode::Down | KeyCode::Char('j') => Input::Down,
        KeyCode::Enter | KeyCode::Right => Input::Enter,
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => Input::Back,
        KeyCode::Char(other) => Input::Key(other),
        _ => Input::Key('\0'),
    })
}

/// Where crossterm reads.
fn keyboard() -> io::Result<OwnedFd> {
    match io::stdin().is_terminal() {
        true => io::stdin().as_fd().try_clone_to_owned(),
        false => Ok(File::open("/dev/tty")?.into()),
    }
}

/// Waits for a key, but no longer than this; whether the terminal is still there. crossterm would read the end of a
/// terminal that is gone for ever, without a pause.
fn is_there_after(keyboard: &OwnedFd, longest: Duration) -> bool {
    let mut waited = [PollFd::new(keyboard, PollFlags::IN)];
    // An interruption ends it too; the caller looks for one.
    let _ = rustix::event::poll(&mut waited, Timespec::try_from(longest).ok().as_ref());
    !waited[0]
        .revents()
        .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Read once when a person looks into a process: it costs more than a sample.
fn mappings(view: View) -> Option<Mappings> {
    let View::Mappings(_, pid) = view else {
        return None;
    };
    Some(mapping_sizes(Path::new("/proc"), pid).map_err(|error| error.to_string()))
}
