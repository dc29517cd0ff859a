//! The tables of the live view, and what stands beneath one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use refit_run::printable;
use refit_run::series::{GroupSample, Member, Series};

use super::super::columns::{UNKNOWN, bound, is_partial, per_hour, rate, waited};
use super::sparkline::{history, sparkline};
use super::{Detail, Screen, name};
use crate::format::{bytes, grouped};

impl Screen {
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

    pub(super) fn services(&mut self, frame: &mut Frame, area: Rect, series: &Series) {
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
                grouped(one.processes),
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

    pub(super) fn processes(
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
                grouped(one.threads),
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

    pub(super) fn mappings(&mut self, frame: &mut Frame, area: Rect, pid: u32, detail: &Detail) {
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
