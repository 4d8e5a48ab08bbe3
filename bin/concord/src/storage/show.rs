//! Output for people.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

/// A line this often is enough for a log.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// Rows as columns, as wide as they have to be.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// How far a migration is: a bar on a terminal, lines elsewhere. Always on standard error.
pub(crate) enum Bar {
    Terminal(ProgressBar),
    Lines(Option<Instant>),
    Nothing,
}

impl Bar {
    pub(crate) fn new(is_wanted: bool) -> Self {
        if !is_wanted {
            return Self::Nothing;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines(None);
        }
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Self::Terminal(bar)
    }

    /// Shows what the progress annotation of a migration says, and why it is held up if it is.
    pub(crate) fn show(&mut self, resource: &str, progress: &Value, held_up: Option<&str>) {
        let number = |name: &str| progress[name].as_u64().unwrap_or_default();
        let done = ["current", "migrated", "failed", "deferred"].map(number).iter().sum::<u64>();
        let done = done.saturating_sub(number("migratedBefore"));
        let total = number("total").max(done);
        let text = held_up.map_or_else(|| pace(progress), |why| format!("waiting: {why}"));
        match self {
            Self::Terminal(bar) => {
                bar.set_prefix(resource.to_owned());
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(text);
            }
            Self::Lines(last) if last.is_none_or(|last| last.elapsed() >= LINE_INTERVAL) => {
                *last = Some(Instant::now());
                // Progress that nobody can read is no reason to stop.
                writeln!(io::stderr(), "{resource}: {done} of {total} {text}").ok();
            }
            Self::Lines(_) | Self::Nothing => {}
        }
    }

    pub(crate) fn finish(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The rate, how much longer it takes, and what went wrong.
fn pace(progress: &Value) -> String {
    let mut text = format!("{}/s", progress["ratePerSecond"].as_f64().unwrap_or_default().round());
    if let Some(seconds) = progress["etaSeconds"].as_u64() {
        text += &format!(", {seconds}s left");
    }
    for (name, word) in [("failed", "failed"), ("deferred", "tried again")] {
        match progress[name].as_u64() {
            Some(0) | None => {}
            Some(count) => text += &format!(", {count} {word}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(table(&[row(["A", "B"]), row(["long", ""])]), "A      B\nlong");
    }

    #[test]
    fn the_pace_says_what_went_wrong() {
        let progress = json!({"ratePerSecond": 120.4, "etaSeconds": 7, "failed": 2, "deferred": 0});
        assert_eq!(pace(&progress), "120/s, 7s left, 2 failed");
        assert_eq!(pace(&Value::Null), "0/s");
    }
}
