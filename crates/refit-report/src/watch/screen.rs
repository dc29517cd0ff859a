//! The live view: services, the processes of one, and the memory of one process by what
//! its mappings are for.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use refit_run::printable;
use refit_run::series::{GroupSample, Member, Series, growth};

use super::columns::{UNKNOWN, bound, is_partial, ordered, per_hour, rate, share, waited};
use crate::format::{bytes, number};

/// Samples in a sparkline.
const SPARK: usize = 12;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

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
        frame.render_widget(Paragraph::new(headline(series)), head);
        match self.view {
            View::Services => self.services(frame, middle, series),
            View::Processes(group) => self.processes(frame, middle, series, group, detail),
            View::Mappings(_, pid) => self.mappings(frame, middle, pid, detail),
        }
        frame.render_widget(
            Paragraph::new(vec![self.about(series), Line::from(self.keys())]),
            foot,
        );
    }

    fn table(
        &mut self,
        frame: &mut Frame,
        area: Rect,
        head: &[&str],
        widths: Vec<Constraint>,
        rows: Vec<Vec<String>>,
    ) {
        self.selected = self.selected.min(rows.len().saturating_sub(1));
        let cells =
            |row: Vec<String>| Row::new(row.into_iter().map(|text| Cell::from(printable(&text))));
        let heading = head.iter().map(|title| Cell::from((*title).to_owned()));
        let table = Table::new(rows.into_iter().map(cells), widths)
            .header(Row::new(heading).style(Style::new().add_modifier(Modifier::BOLD)))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = TableState::new().with_selected(Some(self.selected));
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn services(&mut self, frame: &mut Frame, area: Rect, series: &Series) {
        let head = [
            "service", "procs", "syncs/s", "waited", "", "PSS", "", "USS", "RSS", "swap", "tables",
            "growth/h", "VSZ",
        ];
        let widths = [18, 5, 7, 8, 12, 9, 12, 9, 9, 9, 9, 11, 9].map(Constraint::Length);
        let lasted = series.samples.last().map_or(0, |sample| sample.lasted_us);
        let memory = |one: &GroupSample, of: fn(&refit_run::Memory) -> u64| {
            one.memory.map_or(UNKNOWN.to_owned(), |memory| {
                bound(of(&memory), is_partial(one))
            })
        };
        let row = |one: &GroupSample| {
            let syncs = one.syncs.as_ref();
            vec![
                name(series, one.group),
                number(one.processes),
                syncs.map_or(UNKNOWN.to_owned(), |syncs| rate(syncs.calls, lasted)),
                syncs.map_or(UNKNOWN.to_owned(), |syncs| waited(syncs, lasted)),
                sparkline(
                    &history(series, one.group, |one, lasted| {
                        one.syncs
                            .as_ref()
                            .map_or(0.0, |syncs| syncs.busy_us as f64 / lasted.max(1) as f64)
                    }),
                    Some([0.0, 1.0]),
                ),
                memory(one, |memory| memory.pss_bytes),
                sparkline(
                    &history(series, one.group, |one, _| {
                        one.memory.map_or(0.0, |memory| memory.pss_bytes as f64)
                    }),
                    None,
                ),
                memory(one, |memory| memory.uss_bytes),
                bytes(one.rss_bytes as f64),
                memory(one, |memory| memory.swap_bytes),
                memory(one, |memory| memory.page_tables_bytes),
                per_hour(series, one.group),
                bytes(one.vsz_bytes as f64),
            ]
        };
        let rows = self.rows(series).into_iter().map(row).collect();
        self.table(frame, area, &head, widths.to_vec(), rows);
    }

    fn processes(
        &mut self,
        frame: &mut Frame,
        area: Rect,
        series: &Series,
        group: usize,
        detail: &Detail,
    ) {
        let callers = syncs_of(series, group);
        let split = Layout::vertical([
            Constraint::Fill(1),
            Constraint::Length(u16::try_from(callers.len()).unwrap_or(0)),
        ]);
        let [upper, lower] = split.areas(area);
        let head = [
            "process", "pid", "threads", "PSS", "USS", "RSS", "swap", "tables", "VSZ",
        ];
        let widths = [18, 8, 7, 9, 9, 9, 9, 9, 9].map(Constraint::Length);
        let memory = |one: &Member, of: fn(&refit_run::Memory) -> u64| {
            one.memory
                .map_or(UNKNOWN.to_owned(), |memory| bytes(of(&memory) as f64))
        };
        let row = |one: &Member| {
            vec![
                one.name.clone(),
                one.pid.to_string(),
                number(one.threads),
                memory(one, |memory| memory.pss_bytes),
                memory(one, |memory| memory.uss_bytes),
                bytes(one.rss_bytes as f64),
                memory(one, |memory| memory.swap_bytes),
                memory(one, |memory| memory.page_tables_bytes),
                bytes(one.vsz_bytes as f64),
            ]
        };
        let rows = detail.members.iter().map(row).collect();
        self.table(frame, upper, &head, widths.to_vec(), rows);
        frame.render_widget(Paragraph::new(callers), lower);
    }

    fn mappings(&mut self, frame: &mut Frame, area: Rect, pid: u32, detail: &Detail) {
        let head = ["mappings", "PSS", "RSS"];
        let widths = vec![
            Constraint::Length(40),
            Constraint::Length(10),
            Constraint::Length(10),
        ];
        let rows = match &detail.mappings {
            None => Vec::new(),
            Some(Err(error)) => vec![vec![
                format!("process {pid}: {error}"),
                String::new(),
                String::new(),
            ]],
            Some(Ok(all)) => {
                let row = |(name, pss, rss): &(String, u64, u64)| {
                    vec![name.clone(), bytes(*pss as f64), bytes(*rss as f64)]
                };
                all.iter().map(row).collect()
            }
        };
        self.table(frame, area, &head, widths, rows);
    }

    fn about(&self, series: &Series) -> Line<'static> {
        let text = match (&series.witness, self.view) {
            (_, View::Mappings(_, pid)) => format!("process {pid}: read once, when it was opened"),
            (refit_run::series::Witnessing::Unavailable(reason), _) => {
                format!("sync calls are unknown: {reason}")
            }
            (_, View::Processes(group)) => name(series, group),
            _ => "VSZ is address space; most of it is not memory".to_owned(),
        };
        Line::from(printable(&text))
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

fn headline(series: &Series) -> String {
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
    printable(&format!("{}   {pressure}{cost}", super::title(series)))
}

/// Who made sync calls in the last sample, and where.
fn syncs_of(series: &Series, group: usize) -> Vec<Line<'static>> {
    let last = series.samples.last();
    let one = last.and_then(|sample| sample.groups.iter().find(|one| one.group == group));
    let Some(syncs) = one
        .and_then(|one| one.syncs.as_ref())
        .filter(|syncs| syncs.calls > 0)
    else {
        return Vec::new();
    };
    let lasted = last.map_or(0, |sample| sample.lasted_us);
    let callers = syncs.callers.iter().map(|one| {
        format!(
            "{}: {} sync calls/s",
            one.executable,
            rate(one.calls, lasted)
        )
    });
    let directories = syncs.directories.iter().map(|one| {
        let path = one.path.as_deref().unwrap_or("a directory that is gone");
        format!("{path}: {} sync calls/s", rate(one.calls, lasted))
    });
    callers
        .chain(directories)
        .map(|text| Line::from(printable(&text)))
        .collect()
}

/// The last values of a group; 0 where it was not there.
fn history(series: &Series, group: usize, of: impl Fn(&GroupSample, u64) -> f64) -> Vec<f64> {
    let recent = &series.samples[series.samples.len().saturating_sub(SPARK)..];
    let value = |sample: &refit_run::series::Sample| {
        let one = sample.groups.iter().find(|one| one.group == group);
        one.map_or(0.0, |one| of(one, sample.lasted_us))
    };
    recent.iter().map(value).collect()
}

/// A bar for each value; between its own least and most where no range is given.
fn sparkline(values: &[f64], range: Option<[f64; 2]>) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [least, most] = range.unwrap_or([least, most]);
    let bar = |value: &f64| {
        let part = if most > least {
            (value - least) / (most - least)
        } else {
            0.0
        };
        BARS[((part.clamp(0.0, 1.0) * 7.0).round()) as usize]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

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
        assert_eq!(sparkline(&[], None), "");
        assert_eq!(sparkline(&[5.0, 5.0], None), "▁▁");
        assert_eq!(sparkline(&[0.0, 1.0, 2.0], None), "▁▅█");
    }
}
