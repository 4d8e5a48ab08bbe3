//! Two runs side by side.

use crate::{
    report::{Report, Row},
    table::{Table, number},
};

/// The second against the first; above one, the second is better.
pub(crate) fn compare(first: &Report, second: &Report) -> String {
    let mut table = Table::new(&[
        "scenario",
        "per second",
        "",
        "ratio",
        "p50 ms",
        "",
        "ratio",
        "p99 ms",
        "",
        "ratio",
        "CPU-ms",
        "",
        "ratio",
        "RSS MiB",
        "",
        "ratio",
    ]);
    let mut unmatched = Vec::new();
    for row in &first.rows {
        match second.rows.iter().find(|other| other.scenario == row.scenario) {
            Some(other) => table.row(cells(row, other)),
            None => unmatched.push(format!("{} is only in the first", row.scenario)),
        }
    }
    let known = |scenario: &str| first.rows.iter().any(|row| row.scenario == scenario);
    let only_second = second.rows.iter().filter(|row| !known(&row.scenario));
    unmatched.extend(only_second.map(|row| format!("{} is only in the second", row.scenario)));
    let mut text = format!("first: {}\nsecond: {}\n{}", first.label, second.label, table.text());
    text.push_str("Each pair: first, second, and how many times better the second is.\n");
    for note in unmatched.into_iter().chain(warnings(first, second)) {
        text.push_str(&note);
        text.push('\n');
    }
    text
}

fn cells(first: &Row, second: &Row) -> Vec<String> {
    let mut cells = vec![first.scenario.clone()];
    cells.extend(pair(first.per_second(), second.per_second(), Better::More));
    cells.extend(pair(first.latency_ms.p50, second.latency_ms.p50, Better::Less));
    cells.extend(pair(first.latency_ms.p99, second.latency_ms.p99, Better::Less));
    let cpu = |row: &Row| row.server_cpu_each().unwrap_or(0.0);
    cells.extend(pair(cpu(first), cpu(second), Better::Less));
    let rss = |row: &Row| row.usage.server_rss_bytes() as f64 / f64::from(1 << 20);
    cells.extend(pair(rss(first), rss(second), Better::Less));
    cells
}

#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
}

/// Zero means that it was not measured.
fn pair(first: f64, second: f64, better: Better) -> [String; 3] {
    let shown = |value: f64| if value > 0.0 { number(value) } else { "-".to_owned() };
    let ratio = match better {
        _ if first <= 0.0 || second <= 0.0 => "-".to_owned(),
        Better::More => format!("{} x", number(second / first)),
        Better::Less => format!("{} x", number(first / second)),
    };
    [shown(first), shown(second), ratio]
}

/// Why the ratios may mean little.
fn warnings(first: &Report, second: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    if first.settings != second.settings {
        warnings.push("careful: the two were measured with different settings".to_owned());
    }
    let machine = |report: &Report| (report.machine.cpus, report.machine.cpu_model.clone());
    if machine(first) != machine(second) {
        warnings.push("careful: the two were measured on different machines".to_owned());
    }
    for report in [first, second] {
        for row in report.rows.iter().filter(|row| !row.good()) {
            warnings
                .push(format!("careful: {} of {} had failures or lost events", row.scenario, report.label));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    fn with(label: &str, rows: Vec<Row>) -> Report {
        Report { label: label.to_owned(), rows, ..report() }
    }

    fn row(scenario: &str, count: u64, p50: f64) -> Row {
        let mut row = Row { scenario: scenario.to_owned(), count, seconds: 1.0, ..Row::default() };
        row.latency_ms.p50 = p50;
        row
    }

    #[test]
    fn ratios_say_how_much_better_the_second_is() {
        assert_eq!(pair(10.0, 50.0, Better::More), ["10.0", "50.0", "5.00 x"]);
        assert_eq!(pair(10.0, 50.0, Better::Less), ["10.0", "50.0", "0.200 x"]);
        assert_eq!(pair(0.0, 50.0, Better::More), ["-", "50.0", "-"]);
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let first = with("a", vec![row("get", 10, 2.0), row("list", 1, 1.0)]);
        let mut second = with("b", vec![row("get", 40, 1.0), row("watch", 1, 1.0)]);
        second.rows[0].failures = 1;
        second.settings.objects = 7;
        let text = compare(&first, &second);
        for expected in [
            "4.00 x",
            "2.00 x",
            "list is only in the first",
            "watch is only in the second",
            "different settings",
            "get of b had failures",
        ] {
            assert!(text.contains(expected), "{text} does not say {expected}");
        }
        assert!(!compare(&first, &first).contains("careful"));
    }
}
