use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

use crate::{
    CompletedConfig, Shutdown, ShutdownToken,
    config::Stopping,
    connection::{Connections, Protocol},
};

/// After a failed accept, which usually means that the process has no file descriptors left, some must be
/// given back before the next attempt can succeed.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// How long a connection may say nothing before the system asks whether the client is there, and how often it
/// asks.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A server that has its address and is ready to run.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shutdown: Shutdown,
    stopping: Stopping,
    permits: Arc<Semaphore>,
    connections: Arc<Connections>,
    /// Owns the connections: they end with the server.
    tasks: JoinSet<()>,
    draining: ShutdownToken,
    /// Counts the requests that HTTP/2 connections run side by side.
    streams: TaskTracker,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// How many connections were cut because their requests did not finish in time.
    pub cut: usize,
}

impl Server {
    pub(crate) fn new(config: CompletedConfig, listener: TcpListener, address: SocketAddr) -> Self {
        let (draining, streams) = (config.draining, TaskTracker::new());
        let protocol = Protocol::new(&config.limits, streams.clone());
        Self {
            listener,
            address,
            shutdown: config.shutdown,
            stopping: config.stopping,
            permits: Arc::new(Semaphore::new(config.limits.connections)),
            connections: Arc::new(Connections {
                tls: config.tls,
                handshake: config.limits.handshake,
                first_request: config.limits.header,
                protocol,
                handler: config.handler,
                metrics: config.metrics,
                draining: draining.clone(),
            }),
            tasks: JoinSet::new(),
            draining,
            streams,
        }
    }

    /// The address it listens on, with the port the system chose if it was asked to.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves, then makes `/readyz` fail, goes on for the configured delay, stops
    /// accepting, tells watches to end, and lets requests finish within the configured grace.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cuts every connection.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Drained {
        let stopping = self.stopping.clone();
        let delay = self.shutdown.delay;
        let mut stop = pin!(async move {
            stop.await;
            stopping.begin();
            sleep(delay).await;
        });
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(finished) = self.tasks.join_next() => log_panic(finished),
                accepted = accept(&self.listener, &self.permits) => match accepted {
                    Ok((stream, permit)) => self.serve(stream, permit),
                    Err(error) => {
                        tracing::warn!(%error, "A connection could not be accepted.");
                        sleep(ACCEPT_BACKOFF).await;
                    }
                },
            }
        }
        self.finish().await
    }

    fn serve(&mut self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        let connections = self.connections.clone();
        self.tasks.spawn(async move {
            connections.serve(stream).await;
            drop(permit);
        });
    }

    async fn finish(mut self) -> Drained {
        drop(self.listener);
        self.draining.0.cancel();
        self.streams.close();
        let finished = async {
            while let Some(finished) = self.tasks.join_next().await {
                log_panic(finished);
            }
            self.streams.wait().await;
        };
        let cut = match timeout(self.shutdown.grace, finished).await {
            Ok(()) => 0,
            Err(_) => self.tasks.len(),
        };
        self.tasks.shutdown().await;
        Drained { cut }
    }
}

/// Waits for room first: a connection that cannot be served yet waits in the system's queue, where it costs
/// us nothing.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Answers are written whole; waiting to fill packets only delays them.
    stream.set_nodelay(true)?;
    // A client that vanished says nothing; over HTTP/1.1 only the system can find out.
    SockRef::from(&stream)
        .set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))?;
    Ok((stream, permit))
}

fn log_panic(finished: Result<(), tokio::task::JoinError>) {
    if let Err(error) = finished {
        tracing::error!(%error, "A connection ended in a panic.");
    }
}
