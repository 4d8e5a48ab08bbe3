//! A server on loopback and what tests do with it.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use concord_pki::{AdminPki, ServingNames, ServingPki};
use concord_server::{
    AlwaysAllow, Authentication, ClientAuthorities, Config, Drained, Version,
    test_client::{Protocol, Target, TestClient},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// Far longer than anything here takes, far shorter than the patience of a test runner.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) ca: PathBuf,
    pub(crate) admin: AdminPki,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<Drained>,
    _directory: TempDir,
}

impl Running {
    pub(crate) async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let pki = ServingPki::open_or_create(directory.path(), &ServingNames::loopback(), SystemTime::now())
            .expect("a PKI");
        let admin = AdminPki::open_or_create(directory.path(), SystemTime::now()).expect("a PKI");
        let client_ca = ClientAuthorities::from_pem(admin.ca.as_bytes()).expect("an authority");
        let mut config = Config::new(pki.identity, version());
        (config.bind_address, config.secure_port) = (Ipv4Addr::LOCALHOST.into(), 0);
        config.authentication =
            Authentication { client_ca: Some(Arc::new(client_ca)), ..Authentication::default() };
        config.authorizer = Arc::new(AlwaysAllow);
        change(&mut config);
        let server = config.complete().expect("a valid configuration").listen().await.expect("a free port");
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { address, ca: pki.ca_certificate, admin, stop: Some(stop), task, _directory: directory }
    }

    pub(crate) fn target(&self, protocol: Protocol) -> Target {
        Target::new(self.address, &self.ca, protocol)
    }

    /// As the administrator.
    pub(crate) async fn admin(&self, protocol: Protocol) -> TestClient {
        let target = self.target(protocol).with_identity(&self.admin.certificate, &self.admin.key);
        target.connect().await.expect("a connection")
    }

    pub(crate) async fn client(&self, protocol: Protocol) -> TestClient {
        self.target(protocol).connect().await.expect("a connection")
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().expect("stopped once").send(()).expect("the server is running");
    }

    pub(crate) async fn drained(self) -> Drained {
        timeout(SOON, self.task).await.expect("the server ends").expect("without a panic")
    }
}

pub(crate) fn version() -> Version {
    let text = |value: &str| value.to_owned();
    Version {
        major: text("1"),
        minor: text("36"),
        emulation_major: text("1"),
        emulation_minor: text("36"),
        min_compatibility_major: text("1"),
        min_compatibility_minor: text("35"),
        git_version: text("v1.36.4+test"),
        git_commit: text("unknown"),
        git_tree_state: text("clean"),
        build_date: text("1970-01-01T00:00:00Z"),
        go_version: text("none"),
        compiler: text("rustc"),
        platform: Version::platform(),
    }
}

/// Waits until the server has closed the connection.
pub(crate) async fn closed(stream: &mut (impl AsyncRead + Unpin)) {
    let mut rest = Vec::new();
    // An error is as good as an orderly end: both mean that the connection is gone.
    drop(timeout(SOON, stream.read_to_end(&mut rest)).await.expect("the server closes the connection"));
}
