//! Log entries on standard error.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::anyhow;
use concord_server::{HealthCheck, Unhealthy, check_fn};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer as _, filter::Targets, fmt, fmt::MakeWriter, layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::cli::{LogFormat, LogOptions};

/// Starts logging for the whole process. The check it gives fails while entries cannot be written.
pub(crate) fn init(options: &LogOptions) -> anyhow::Result<impl HealthCheck + use<>> {
    let output = Output::default();
    let layer = fmt::layer().with_writer(output.clone());
    let layer = match options.logging_format {
        LogFormat::Text => layer.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    let registry = tracing_subscriber::registry().with(layer.with_filter(filter(options.verbosity)));
    registry.try_init().map_err(|error| anyhow!("cannot start logging: {error}"))?;
    Ok(check_fn("log", move || std::future::ready(output.health())))
}

/// Kubernetes' levels are numbers. Libraries are heard at debug level only when everything is asked for.
fn filter(verbosity: u8) -> Targets {
    let (ours, others) = match verbosity {
        0..=3 => (LevelFilter::INFO, LevelFilter::WARN),
        4..=5 => (LevelFilter::DEBUG, LevelFilter::INFO),
        _ => (LevelFilter::TRACE, LevelFilter::DEBUG),
    };
    Targets::new().with_target("concord", ours).with_default(others)
}

/// Standard error, remembering whether the last write failed.
#[derive(Clone, Default)]
struct Output {
    failed: Arc<AtomicBool>,
}

impl Output {
    fn health(&self) -> Result<(), Unhealthy> {
        match self.failed.load(Ordering::Relaxed) {
            true => Err(Unhealthy("the last log entry could not be written to standard error".to_owned())),
            false => Ok(()),
        }
    }

    fn remember<T>(&self, result: io::Result<T>) -> io::Result<T> {
        self.failed.store(result.is_err(), Ordering::Relaxed);
        result
    }
}

impl Write for Output {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        // In one piece: entries of several threads must not mix.
        self.remember(io::stderr().lock().write_all(entry))?;
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.remember(io::stderr().flush())
    }
}

impl<'a> MakeWriter<'a> for Output {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn verbosity_turns_up_our_own_entries_first() {
        let enabled = |verbosity, target, level| filter(verbosity).would_enable(target, &level);
        assert!(enabled(0, "concord_server", Level::INFO) && !enabled(0, "concord_server", Level::DEBUG));
        assert!(enabled(4, "concord_server", Level::DEBUG) && !enabled(4, "h2", Level::DEBUG));
        assert!(enabled(6, "concord", Level::TRACE) && enabled(9, "h2", Level::DEBUG));
    }

    #[test]
    fn a_log_that_cannot_be_written_is_unhealthy_until_it_can() {
        let output = Output::default();
        assert!(output.health().is_ok());
        assert!(output.remember(Err::<(), _>(io::Error::other("full"))).is_err());
        assert!(output.health().is_err());
        assert!(output.remember(Ok(())).is_ok());
        assert!(output.health().is_ok());
    }
}
