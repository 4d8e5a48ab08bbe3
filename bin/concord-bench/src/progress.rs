//! A bar per measurement, on terminals only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How far one measurement is. Without a terminal nothing is drawn.
pub(crate) struct Progress {
    bar: ProgressBar,
    extent: Extent,
}

enum Extent {
    Count,
    Time,
}

impl Progress {
    /// Ends after so many.
    pub(crate) fn counting(name: &str, count: u64) -> Self {
        let bar = bar(name, count, "{prefix:>22} {bar:30} {pos}/{len} {msg} {eta}");
        Self { bar, extent: Extent::Count }
    }

    /// Ends after a time.
    pub(crate) fn timed(name: &str, duration: Duration) -> Self {
        let bar = bar(name, millis(duration), "{prefix:>22} {bar:30} {msg}");
        Self { bar, extent: Extent::Time }
    }

    /// Draws the state.
    pub(crate) fn show(&self, done: u64, elapsed: Duration) {
        self.bar.set_position(match self.extent {
            Extent::Count => done,
            Extent::Time => millis(elapsed),
        });
        self.bar.set_message(format!("{:.0}/s", done as f64 / elapsed.as_secs_f64().max(0.001)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bar(name: &str, length: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is good");
    ProgressBar::new(length).with_style(style).with_prefix(name.to_owned())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
