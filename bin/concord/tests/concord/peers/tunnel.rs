//! A proxy on a UNIX socket, through which a server reaches the others.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tempfile::{TempDir, tempdir};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpStream, UnixListener, UnixStream},
    task::JoinSet,
};

pub(super) struct ConnectProxy {
    directory: TempDir,
    tunnels: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl ConnectProxy {
    pub(super) fn start() -> Self {
        let directory = tempdir().expect("a directory");
        let listener = UnixListener::bind(directory.path().join("proxy.sock")).expect("a socket");
        let tunnels = Arc::new(AtomicUsize::new(0));
        let count = tunnels.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let count = count.clone();
                connections.spawn(async move {
                    if let Some(target) = asked(stream).await {
                        count.fetch_add(1, Ordering::SeqCst);
                        let (mut near, mut far) = target;
                        copy_bidirectional(&mut near, &mut far).await.ok();
                    }
                });
            }
        });
        Self { directory, tunnels, _tasks: tasks }
    }

    /// The file for `--egress-selector-config-file`.
    pub(super) fn configuration(&self) -> PathBuf {
        let file = self.directory.path().join("egress.yaml");
        let socket = self.directory.path().join("proxy.sock");
        let text = format!(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n\
             - name: controlplane\n  connection:\n    proxyProtocol: HTTPConnect\n    transport:\n      uds:\n        \
             udsName: {}\n",
            socket.display()
        );
        std::fs::write(&file, text).expect("written");
        file
    }

    /// How many connections led somewhere.
    pub(super) fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::SeqCst)
    }
}

/// Leads to wherever is asked for.
async fn asked(mut near: UnixStream) -> Option<(UnixStream, TcpStream)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(near.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    let far = TcpStream::connect(target).await.ok()?;
    near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    Some((near, far))
}
