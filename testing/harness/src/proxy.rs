//! A TCP proxy between a client and a server that delays, swallows and cuts what passes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

/// What happens to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Everything passes.
    #[default]
    None,
    /// Each piece of data waits for a random time up to this.
    Delay(Duration),
    /// Connections stay open and new ones are taken, but nothing passes until the fault ends.
    BlackHole,
    /// Nobody listens: new connections are refused. Existing ones go on; see [`Proxy::cut`].
    Refuse,
}

/// A proxy in front of one address. Dropping it closes all connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    fault: Fault,
    /// Where new connections go.
    target: SocketAddr,
    /// Connections older than this are cut.
    generation: u64,
}

impl Proxy {
    /// Listens on a free port of loopback. The seed decides the delays.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    pub async fn start(target: SocketAddr, seed: u64) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (state, changes) = watch::channel(State { fault: Fault::None, target, generation: 0 });
        let task = tokio::spawn(accept(listener, address, changes, StdRng::seed_from_u64(seed)));
        Ok(Self { address, state, task })
    }

    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An `http://` URL of the proxy.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on this happens, also to connections that exist.
    pub fn set(&self, fault: Fault) {
        self.state.send_modify(|state| state.fault = fault);
    }

    /// From now on new connections go there: for servers that are told of the proxy before they have an address.
    pub fn retarget(&self, target: SocketAddr) {
        self.state.send_modify(|state| state.target = target);
    }

    /// Closes all connections that exist.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.generation += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    address: SocketAddr,
    mut changes: watch::Receiver<State>,
    mut rng: StdRng,
) {
    let mut listener = Some(listener);
    // Owned here: aborting this task ends them all.
    let mut connections = JoinSet::new();
    loop {
        let refuse = changes.borrow_and_update().fault == Fault::Refuse;
        if refuse {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            // Bind again a little later if somebody holds the port.
            () = sleep(Duration::from_millis(50)), if listener.is_none() && !refuse => {}
            Some(client) = next(listener.as_ref()) => {
                connections.spawn(connection(client, changes.clone(), StdRng::from_rng(&mut rng)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn next(listener: Option<&TcpListener>) -> Option<TcpStream> {
    listener?.accept().await.ok().map(|(stream, _)| stream)
}

/// Passes data both ways until one side closes or the connection is cut.
async fn connection(client: TcpStream, mut changes: watch::Receiver<State>, mut rng: StdRng) {
    let State { generation, target, .. } = *changes.borrow_and_update();
    let (up, down) = (changes.clone(), changes.clone());
    let (up_rng, down_rng) = (StdRng::from_rng(&mut rng), rng);
    let pass_both = async move {
        pass_allowed(&mut up.clone()).await?;
        let server = TcpStream::connect(target).await.ok()?;
        client.set_nodelay(true).and(server.set_nodelay(true)).ok()?;
        let ((client_read, client_write), (server_read, server_write)) =
            (client.into_split(), server.into_split());
        tokio::select! {
            () = pass(client_read, server_write, up, up_rng) => {}
            () = pass(server_read, client_write, down, down_rng) => {}
        }
        Some(())
    };
    tokio::select! {
        _ = pass_both => {}
        _ = changes.wait_for(|state| state.generation != generation) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    mut rng: StdRng,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let Some(fault) = pass_allowed(&mut state).await else { return };
        if let Fault::Delay(longest) = fault {
            sleep(longest.mul_f64(rng.random_range(0.0..=1.0))).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// Waits until there is no black hole.
async fn pass_allowed(state: &mut watch::Receiver<State>) -> Option<Fault> {
    state.wait_for(|state| state.fault != Fault::BlackHole).await.ok().map(|state| state.fault)
}
