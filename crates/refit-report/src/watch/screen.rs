//! The live view: services, the processes of one, and the memory of one process by what
//! its mappings are for.

mod sparkline;
mod tables;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use refit_run::printable;
use refit_run::series::{GroupSample, Member, Series, growth};

use super::columns::{ordered, share};
use crate::format::shortened;

/// By what services are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Waited,
    Pss,
    Rss,
    Growth,
    Name,
}

/// A key, its order, and its name.
const ORDERS: [(char, Order, &str); 5] = [
    ('w', Order::Waited, "waited"),
    ('p', Order::Pss, "PSS"),
    ('r', Order::Rss, "RSS"),
    ('g', Order::Growth, "growth"),
    ('n', Order::Name, "name"),
];

/// What a person did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// Into the selected row.
    Enter,
    /// Back out of it.
    Back,
    /// Another key.
    Key(char),
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All services.
    Services,
    /// The processes of this group.
    Processes(usize),
    /// The mappings of this process of a group.
    Mappings(usize, u32),
}

/// What the mappings of a process are for, and PSS and RSS of each in bytes; or why they
/// are not known.
pub type Mappings = Result<Vec<(String, u64, u64)>, String>;

/// What the view needs beside the series.
#[derive(Debug, Default)]
pub struct Detail {
    /// Of the group that is looked into.
    pub members: Vec<Member>,
    /// Of the process that is looked into.
    pub mappings: Option<Mappings>,
}

/// What is shown, and which row is selected.
#[derive(Debug)]
pub struct Screen {
    view: View,
    order: Order,
    selected: usize,
}

/// Columns of the title, however narrow the terminal is.
const LEAST_TITLE: usize = 24;

impl Default for Screen {
    fn default() -> Screen {
        Screen {
            view: View::Services,
            order: Order::Waited,
            selected: 0,
        }
    }
}

impl Screen {
    /// What is shown now.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// Takes what a person did.
    pub fn take(&mut self, input: Input, series: &Series, detail: &Detail) {
        match (input, self.view) {
            (Input::Up, _) => self.selected = self.selected.saturating_sub(1),
            (Input::Down, _) => self.selected += 1,
            (Input::Enter, View::Services) => {
                let group = self.rows(series).get(self.selected).map(|one| one.group);
                if let Some(group) = group {
                    (self.view, self.selected) = (View::Processes(group), 0);
                }
            }
            (Input::Enter, View::Processes(group)) => {
                if let Some(member) = detail.members.get(self.selected) {
                    (self.view, self.selected) = (View::Mappings(group, member.pid), 0);
                }
            }
            (Input::Back, View::Mappings(group, _)) => {
                (self.view, self.selected) = (View::Processes(group), 0)
            }
            (Input::Back, View::Processes(_)) => (self.view, self.selected) = (View::Services, 0),
            (Input::Key(key), View::Services) => {
                if let Some((_, order, _)) = ORDERS.iter().find(|(of, ..)| *of == key) {
                    (self.order, self.selected) = (*order, 0);
                }
            }
            _ => {}
        }
    }

    fn rows<'a>(&self, series: &'a Series) -> Vec<&'a GroupSample> {
        let Some(last) = series.samples.last() else {
            return Vec::new();
        };
        let mut rows = ordered(last);
        let pss = |one: &GroupSample| one.memory.map_or(0, |memory| memory.pss_bytes);
        let rate = |one: &GroupSample| {
            growth(series, one.group).map_or(0.0, |growth| growth.bytes_per_hour)
        };
        match self.order {
            Order::Waited => {}
            Order::Pss => rows.sort_by_key(|one| std::cmp::Reverse(pss(one))),
            Order::Rss => rows.sort_by_key(|one| std::cmp::Reverse(one.rss_bytes)),
            Order::Growth => rows.sort_by(|a, b| rate(b).total_cmp(&rate(a))),
            Order::Name => rows.sort_by_key(|one| name(series, one.group)),
        }
        rows
    }

    /// Draws it.
    pub fn draw(&mut self, frame: &mut Frame, series: &Series, detail: &Detail) {
        let rows = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(2),
        ]);
        let [head, middle, foot] = rows.areas(frame.area());
        frame.render_widget(
            Paragraph::new(headline(series, usize::from(head.width))),
            head,
        );
        match self.view {
            View::Services => self.services(frame, middle, series),
            View::Processes(group) => self.processes(frame, middle, series, group, detail),
            View::Mappings(_, pid) => self.mappings(frame, middle, pid, detail),
        }
        frame.render_widget(
            Paragraph::new(vec![
                self.about(series, usize::from(foot.width)),
                Line::from(self.keys()),
            ]),
            foot,
        );
    }

    fn about(&self, series: &Series, width: usize) -> Line<'static> {
        let text = match (&series.witness, self.view) {
            (_, View::Mappings(_, pid)) => format!("process {pid}: read once, when it was opened"),
            (refit_run::series::Witnessing::Unavailable(reason), _) => {
                format!("sync calls are unknown: {reason}")
            }
            (_, View::Processes(group)) => name(series, group),
            _ => "VSZ is address space; most of it is not memory".to_owned(),
        };
        Line::from(shortened(&printable(&text), width))
    }

    fn keys(&self) -> String {
        let orders = ORDERS.map(|(key, order, name)| match order == self.order {
            true => format!("{key} [{name}]"),
            false => format!("{key} {name}"),
        });
        match self.view {
            View::Services => format!("q quit  Enter processes  {}", orders.join("  ")),
            View::Processes(_) => "q quit  Enter mappings  Esc back".to_owned(),
            View::Mappings(..) => "q quit  Esc back".to_owned(),
        }
    }
}

fn name(series: &Series, group: usize) -> String {
    series
        .groups
        .get(group)
        .map_or("?", |group| &group.name)
        .to_owned()
}

/// The command of a watch may be of any length; what follows it stays in sight.
fn headline(series: &Series, width: usize) -> String {
    let pressure = series
        .samples
        .last()
        .and_then(|sample| Some((sample.pressure?, sample.lasted_us)));
    let pressure = pressure.map_or("PSI unknown".to_owned(), |(pressure, lasted)| {
        let [cpu, io, memory] =
            [pressure.cpu_us, pressure.io_us, pressure.memory_us].map(|us| share(us, lasted));
        format!("PSI cpu {cpu}  io {io}  memory {memory}")
    });
    let cost = series.cost.share().map_or(String::new(), |share| {
        format!("   refit uses {:.1} % of a core", share * 100.0)
    });
    let now = format!("   {pressure}{cost}");
    let title = printable(&super::title(series));
    let room = width.saturating_sub(now.chars().count()).max(LEAST_TITLE);
    format!("{}{now}", shortened(&title, room))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_command_of_any_length_hides_nothing_and_is_marked_as_cut() {
        let mut series = sample::machine();
        series.target = vec![
            "sh".to_owned(),
            "\u{1b}[2J\u{202e} a".repeat(1_000_000),
            "end".to_owned(),
        ];
        let text = shown(
            &mut Screen::default(),
            &series,
            &Detail::default(),
            (100, 12),
        );
        let head = text.lines().next().unwrap();
        assert!(
            head.contains("refit watch: sh ") && head.contains('…'),
            "{head}"
        );
        assert!(head.contains(" end   PSI cpu "), "{head}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }

    fn shown(screen: &mut Screen, series: &Series, detail: &Detail, size: (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal
            .draw(|frame| screen.draw(frame, series, detail))
            .unwrap();
        terminal.backend().to_string()
    }

    fn detail() -> Detail {
        Detail {
            members: vec![Member {
                pid: 41,
                name: "cleanup".to_owned(),
                threads: 3,
                rss_bytes: 5 << 20,
                vsz_bytes: 9 << 20,
                memory: None,
            }],
            mappings: Some(Ok(vec![("heap".to_owned(), 3 << 20, 4 << 20)])),
        }
    }

    #[test]
    fn a_person_looks_into_a_service_and_a_process_and_back() {
        let (series, detail) = (sample::machine(), detail());
        let mut screen = Screen::default();
        let text = shown(&mut screen, &series, &detail, (160, 12));
        assert!(
            text.contains("postfix") && text.contains("8.0 %") && text.contains("▁"),
            "{text}"
        );
        assert!(
            text.contains("w [waited]") && text.contains("PSI cpu 10 %"),
            "{text}"
        );
        assert!(text.find("postfix") < text.find("app"), "{text}");
        screen.take(Input::Key('p'), &series, &detail);
        let text = shown(&mut screen, &series, &detail, (160, 12));
        assert!(text.find("postfix") > text.find("app\\u"), "{text}");
        screen.take(Input::Down, &series, &detail);
        screen.take(Input::Down, &series, &detail);
        shown(&mut screen, &series, &detail, (160, 12));
        screen.take(Input::Enter, &series, &detail);
        assert_eq!(
            screen.view(),
            View::Processes(0),
            "the last row stays the last"
        );
        let text = shown(&mut screen, &series, &detail, (160, 12));
        assert!(
            text.contains("cleanup: 204 sync calls/s") && text.contains("unknown"),
            "{text}"
        );
        screen.take(Input::Enter, &series, &detail);
        assert_eq!(screen.view(), View::Mappings(0, 41));
        assert!(shown(&mut screen, &series, &detail, (160, 12)).contains("heap"));
        screen.take(Input::Back, &series, &detail);
        screen.take(Input::Back, &series, &detail);
        screen.take(Input::Back, &series, &detail);
        assert_eq!(screen.view(), View::Services);
    }

    #[test]
    fn no_screen_is_too_small_and_no_series_too_empty() {
        let mut series = sample::machine();
        for _ in 0..3 {
            for size in [(1, 1), (20, 3), (400, 80)] {
                for view in [View::Services, View::Processes(7), View::Mappings(7, 1)] {
                    let mut screen = Screen {
                        view,
                        ..Screen::default()
                    };
                    shown(&mut screen, &series, &Detail::default(), size);
                    screen.take(Input::Enter, &series, &Detail::default());
                }
            }
            series.samples.truncate(1);
            series.samples.pop();
        }
    }
}
