//! Connections that are kept and shared.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use concord_server::Body;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use hyper::client::conn::http1;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};

use crate::{Connector, ForwardError, connect::Sender, http2::Http2};

/// How many requests share an HTTP/2 connection; more get another one. Well below what servers allow (Go: 250, upstream:
/// 100 and more), so that no request ever waits behind watches that last for hours.
pub(crate) const MAX_STREAMS: usize = 64;

/// How many connections are made for one request at most: with a crowd that all want one, others may take the first few. A
/// server that ends every connection at once must not be dialled for ever.
const MOST_DIALS: usize = 16;

/// How many unused HTTP/1 connections are kept and for how long; Go keeps so many and so long.
const MAX_IDLE: usize = 25;
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long the end of an answer that was read may take to arrive. It is usually there already.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The connections to one server.
pub(crate) struct Pool {
    connector: Arc<Connector>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    http2: Vec<Multiplexed>,
    http1: Vec<(http1::SendRequest<Body>, Instant)>,
    /// The connection that is being made, for all who wait for one.
    dialing: Option<Dialing>,
    /// The other side does not speak HTTP/2, so that a connection is good for one request at a time.
    speaks_http1: bool,
}

type Dialing = Shared<BoxFuture<'static, Result<(), ForwardError>>>;

struct Multiplexed {
    connection: Http2,
    requests: Arc<AtomicUsize>,
}

/// A connection to send one request on.
pub(crate) enum Ready {
    /// Nobody else uses it until [`Pool::give_back`].
    Http1(http1::SendRequest<Body>),
    /// Others use it as well; it counts as used for as long as the share exists.
    Http2(Http2, Share),
}

/// One of the requests on a connection.
pub(crate) struct Share(Arc<AtomicUsize>);

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self { connector, open: Arc::default() }
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// A connection; a new one if none can be shared.
    pub(crate) async fn ready(&self) -> Result<Ready, ForwardError> {
        for _ in 0..MOST_DIALS {
            let dialing = {
                let mut open = self.open.lock();
                if let Some(ready) = open.take() {
                    return Ok(ready);
                }
                (!open.speaks_http1).then(|| self.dialing(&mut open))
            };
            match dialing {
                Some(dialing) => dialing.await?,
                None => {
                    let sender = Box::pin(self.connector.connect()).await?;
                    self.open.lock().keep(sender);
                }
            }
        }
        let ended =
            io::Error::new(io::ErrorKind::ConnectionAborted, "connections end as soon as they are made");
        Err(ForwardError::Connect(Arc::new(ended)))
    }

    /// The connection that is being made. It is made by a task of its own: whoever asked for it first may go away, and the
    /// others still get it.
    fn dialing(&self, open: &mut Open) -> Dialing {
        if let Some(dialing) = &open.dialing {
            return dialing.clone();
        }
        let (connector, kept) = (self.connector.clone(), self.open.clone());
        let task = tokio::spawn(async move {
            let connected = connector.connect().await;
            let mut open = kept.lock();
            open.dialing = None;
            connected.map(|sender| open.keep(sender))
        });
        let dialing = async move {
            task.await
                .unwrap_or_else(|stopped| Err(ForwardError::Connect(Arc::new(io::Error::other(stopped)))))
        };
        let dialing = dialing.boxed().shared();
        open.dialing = Some(dialing.clone());
        dialing
    }

    /// Keeps an HTTP/1 connection for others once the other side is through with its answer.
    pub(crate) fn give_back(&self, mut sender: http1::SendRequest<Body>) -> impl FnOnce() + Send + 'static {
        let open = self.open.clone();
        move || {
            // Where nothing runs any more, nobody needs the connection.
            let Ok(runtime) = Handle::try_current() else { return };
            runtime.spawn(async move {
                if matches!(timeout(END_TIMEOUT, sender.ready()).await, Ok(Ok(()))) {
                    open.lock().keep(Sender::Http1(sender));
                }
            });
        }
    }
}

impl Open {
    /// A connection that can take one more request.
    fn take(&mut self) -> Option<Ready> {
        self.tidy();
        let is_free = |one: &&Multiplexed| {
            !one.connection.is_closed() && one.requests.load(Ordering::Relaxed) < one.connection.most()
        };
        while let Some(one) = self.http2.iter().find(is_free) {
            let mut connection = one.connection.clone();
            if connection.takes_more() {
                one.requests.fetch_add(1, Ordering::Relaxed);
                return Some(Ready::Http2(connection, Share(one.requests.clone())));
            }
        }
        self.http1.pop().map(|(sender, _)| Ready::Http1(sender))
    }

    /// Forgets connections that ended, and those that nobody has used for a while.
    fn tidy(&mut self) {
        self.http2.retain(|one| !one.connection.is_closed());
        let mut unused = 0;
        self.http2.retain(|one| {
            let is_used = one.requests.load(Ordering::Relaxed) > 0;
            unused += usize::from(!is_used);
            is_used || unused <= 1
        });
        let now = Instant::now();
        self.http1.retain(|(sender, since)| sender.is_ready() && now.duration_since(*since) < IDLE_TIMEOUT);
    }

    fn keep(&mut self, sender: Sender) {
        self.speaks_http1 = matches!(sender, Sender::Http1(_));
        match sender {
            Sender::Http2(connection) => {
                self.http2.push(Multiplexed { connection, requests: Arc::default() });
            }
            Sender::Http1(sender) if self.http1.len() < MAX_IDLE => self.http1.push((sender, Instant::now())),
            Sender::Http1(_) => {}
        }
    }
}
