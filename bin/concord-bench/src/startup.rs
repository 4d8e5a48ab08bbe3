//! Starts the server and waits until it says that it is ready.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use tokio::process::{Child, Command};

use crate::{
    client::{Call, Connection, Server},
    progress::Progress,
    scan, stats,
};

/// Between two looks: short against what is measured, long against what a look costs.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// A look at a server that accepts connections and does not answer.
const LOOK: Duration = Duration::from_secs(2);
/// How long a server may take to end after SIGTERM.
const STOPPING: Duration = Duration::from_secs(30);

/// A server that we started. Killed when dropped; end it with [`Started::stop`].
pub(crate) struct Started {
    child: Child,
    pub(crate) pid: u32,
}

/// Starts and stops the server `runs` times and leaves the last one running.
pub(crate) async fn measure(
    server: &Server,
    command: &str,
    runs: usize,
    time_limit: Duration,
) -> Result<(Histogram<u64>, Started)> {
    ensure!(
        !Probe::default().ready(server).await,
        "something is ready at {} already: stop it, since the start is what is measured",
        server.url()
    );
    let progress = Progress::counting("startup", runs as u64);
    let (mut times, all) = (stats::histogram(), Instant::now());
    let mut run = 0;
    loop {
        let (took, started) = start(server, command, time_limit).await?;
        times.saturating_record(stats::micros(took));
        run += 1;
        progress.show(run as u64, all.elapsed());
        if run == runs {
            return Ok((times, started));
        }
        started.stop().await?;
    }
}

async fn start(server: &Server, command: &str, time_limit: Duration) -> Result<(Duration, Started)> {
    let begun = Instant::now();
    // A group of its own: whatever the shell starts can be stopped, and Ctrl-C reaches only us.
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("cannot run sh")?;
    let pid = child.id().context("the server ended at once")?;
    let mut probe = Probe::default();
    while !probe.ready(server).await {
        if let Some(status) = child.try_wait()? {
            bail!("the server ended before it was ready ({status}): run `{command}` yourself to see why");
        }
        ensure!(begun.elapsed() < time_limit, "not ready within {time_limit:?}: {}/readyz", server.url());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok((begun.elapsed(), Started { child, pid }))
}

/// Asks whether the server is ready, on one connection as soon as there is one: a handshake for every look would
/// slow down the start that is measured.
#[derive(Default)]
struct Probe {
    connection: Option<Connection>,
}

impl Probe {
    async fn ready(&mut self, server: &Server) -> bool {
        matches!(tokio::time::timeout(LOOK, self.look(server)).await, Ok(Ok(true)))
    }

    async fn look(&mut self, server: &Server) -> Result<bool> {
        // Taken out, so that a connection on which anything fails is not used again.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => server.connect().await?,
        };
        let answer = connection.send(Call::get("/readyz")).await?;
        let ready = answer.status().is_success();
        scan::drain(answer.into_body()).await?;
        self.connection = Some(connection);
        Ok(ready)
    }
}

impl Started {
    /// Asks it to end and waits until it has.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let group = format!("-{}", self.pid);
        let asked =
            Command::new("kill").args(["-TERM", "--", &group]).status().await.context("cannot run kill")?;
        ensure!(asked.success(), "cannot stop the server: process {}", self.pid);
        if tokio::time::timeout(STOPPING, self.child.wait()).await.is_err() {
            bail!(
                "the server (process {}) did not end within {STOPPING:?} of SIGTERM and was killed",
                self.pid
            );
        }
        Ok(())
    }
}
