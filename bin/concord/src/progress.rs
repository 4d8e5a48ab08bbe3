//! How far a long command is: a bar on a terminal, lines elsewhere. Always on standard error, so that
//! standard output holds only the result.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use concord_store_embedded::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A line this often is enough to see that something happens, and few enough for a log.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// Shows progress of one command.
pub(crate) enum Reporter {
    Bar(ProgressBar),
    Lines { what: &'static str, last: Instant },
}

impl Reporter {
    pub(crate) fn new(what: &'static str) -> Self {
        if !io::stderr().is_terminal() {
            return Self::Lines { what, last: Instant::now() };
        }
        let bar = ProgressBar::no_length().with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} rows, {eta} left") {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(progress.total);
                bar.set_position(progress.done);
            }
            Self::Lines { what, last } if last.elapsed() >= LINE_INTERVAL => {
                *last = Instant::now();
                // Progress that nobody can read is no reason to stop.
                writeln!(io::stderr(), "{}", line(what, progress)).ok();
            }
            Self::Lines { .. } => {}
        }
    }

    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(what: &str, Progress { done, total }: Progress) -> String {
    let percent = (done * 100).checked_div(total).unwrap_or(100);
    format!("{what}: {percent}% ({done} of {total} rows)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_up_to_all() {
        assert_eq!(line("backup", Progress { done: 1, total: 3 }), "backup: 33% (1 of 3 rows)");
        assert_eq!(line("check", Progress { done: 0, total: 0 }), "check: 100% (0 of 0 rows)");
    }
}
