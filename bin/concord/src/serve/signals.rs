//! How a server is told to end.

use std::{pin::pin, process};

use anyhow::Context as _;
use concord_server::Server;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
};

/// The signals that end a server.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on signals no longer end the process by themselves.
    pub(super) fn install() -> anyhow::Result<Self> {
        let install = |kind| signal(kind).context("cannot install a signal handler");
        Ok(Self {
            terminate: install(SignalKind::terminate())?,
            interrupt: install(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Runs `server`, then `close`, and `retire` when it begins to end. A second signal ends the process at once.
pub(super) async fn run_until_signalled(
    server: Server,
    mut signals: Signals,
    retire: impl Future<Output = ()>,
    close: impl Future<Output = ()>,
) {
    let stop = Notify::new();
    let mut work = pin!(async {
        let drained = server.run(stop.notified()).await;
        if drained.cut > 0 {
            tracing::warn!(connections = drained.cut, "Requests did not finish in time and were cut off.");
        }
        close.await;
    });
    tokio::select! {
        () = &mut work => return,
        name = signals.next() => {
            tracing::info!(signal = name, "Shutting down; a second signal ends the server at once.");
            stop.notify_one();
        }
    }
    tokio::select! {
        ((), ()) = async { tokio::join!(work, retire) } => tracing::info!("The server has ended."),
        name = signals.next() => {
            tracing::warn!(signal = name, "Ending at once.");
            process::exit(1);
        }
    }
}
