//! Columns for people.

use crate::{
    report::{Report, Row},
    stats,
};

/// Right-aligned columns under headings, the first one left-aligned.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, without trailing spaces.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(move |row| row.get(column)).map(|cell| cell.chars().count())
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).max().unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// Three significant digits, and thousands set apart.
pub(crate) fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value.abs() < 1.0 => format!("{value:.3}"),
        _ if value.abs() < 10.0 => format!("{value:.2}"),
        _ if value.abs() < 100.0 => format!("{value:.1}"),
        _ => thousands(value.round()),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The results of one run.
pub(crate) fn results(report: &Report) -> String {
    let mut table = Table::new(&[
        "scenario",
        "count",
        "per second",
        "p50 ms",
        "p99 ms",
        "max ms",
        "MiB/s",
        "server CPU-ms",
        "client CPU-ms",
        "others",
        "RSS MiB",
        "failures",
    ]);
    for row in &report.rows {
        table.row(cells(row, report.machine.cpus));
    }
    let mut text = heading(report);
    text.push_str(&table.text());
    text.push_str(
        "CPU-ms are per count; others is the share of the machine that neither server nor client used.\n",
    );
    for note in report.rows.iter().flat_map(|row| notes(row, report.settings.threads)) {
        text.push_str(&note);
        text.push('\n');
    }
    text
}

fn heading(report: &Report) -> String {
    let (settings, machine) = (&report.settings, &report.machine);
    let mut text = format!(
        "{}: {} {} of {} bytes, {} concurrent on {} connections, HTTP/{}; {} x {}\n",
        report.label,
        settings.objects,
        settings.resource,
        settings.size,
        settings.concurrency,
        settings.connections,
        settings.http,
        machine.cpus,
        machine.cpu_model,
    );
    if !report.idle.processes.is_empty() {
        let idle = report.idle.processes.iter();
        let each = idle.map(|process| format!("{} {}", process.name, number(mebibytes(process.rss_bytes))));
        text.push_str(&format!("RSS MiB before: {}\n", each.collect::<Vec<_>>().join(", ")));
    }
    text
}

fn cells(row: &Row, cpus: usize) -> Vec<String> {
    let latency = row.latency_ms;
    let others = stats::per(row.usage.other_cpu_ms, row.usage.wall_ms * cpus as f64);
    let rss = mebibytes(row.usage.server_rss_bytes());
    let some = |value: f64| if value > 0.0 { number(value) } else { "-".to_owned() };
    vec![
        row.scenario.clone(),
        thousands(row.count as f64),
        some(row.per_second()),
        some(latency.p50),
        some(latency.p99),
        some(latency.max),
        some(stats::per(mebibytes(row.bytes), row.seconds)),
        some(row.server_cpu_each().unwrap_or(0.0)),
        some(row.client_cpu_each()),
        if row.seconds > 0.0 { format!("{:.0}%", 100.0 * others) } else { "-".to_owned() },
        some(rss),
        thousands(row.failures as f64),
    ]
}

fn notes(row: &Row, threads: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if row.client_was_busy(threads) {
        notes.push(format!("{}: the client had no time left; try more --threads", row.scenario));
    }
    if let Some(failure) = &row.first_failure {
        notes.push(format!("{}: first failure: {failure}", row.scenario));
    }
    if let Some(checks) = &row.watch {
        notes.push(format!(
            "{}: {} watchers x {} writes: {} lost, {} repeated, {} out of order, {} watches ended by the server{}",
            row.scenario,
            checks.watchers,
            checks.writes,
            checks.lost,
            checks.repeated,
            checks.disordered,
            checks.closed,
            checks.first_closed.as_ref().map(|why| format!(" ({why})")).unwrap_or_default(),
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let table = [
            (0.0, "0"),
            (0.0124, "0.012"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (1_234_567.8, "1,234,568"),
            (-1234.0, "-1,234"),
        ];
        for (value, expected) in table {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["name", "n"]);
        table.row(vec!["long name".to_owned(), "1".to_owned()]);
        table.row(vec!["x".to_owned(), "100".to_owned()]);
        assert_eq!(table.text(), "name         n\nlong name    1\nx          100\n");
    }
}
