//! Watches over websockets, through a whole server.

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration, time::SystemTime};

use concord_pki::{ServingNames, ServingPki};
use concord_server::{
    AlwaysAllow, Config, Drained, Version,
    test_client::{Protocol, Target},
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot, task::JoinHandle, time::timeout};
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest as _, handshake::client::Response},
};

use crate::support::{Server, WIDGETS, widget};

/// Far longer than anything here takes.
const SOON: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TlsStream<TcpStream>>;

struct Running {
    server: Server,
    target: Target,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Drained>,
    _directory: tempfile::TempDir,
}

impl Running {
    async fn start() -> Self {
        let server = Server::new().await;
        let directory = tempfile::tempdir().expect("a directory");
        let pki = ServingPki::open_or_create(directory.path(), &ServingNames::loopback(), SystemTime::now())
            .expect("a PKI");
        let mut config = Config::new(pki.identity, version());
        (config.bind_address, config.secure_port) = (Ipv4Addr::LOCALHOST.into(), 0);
        config.authorizer = Arc::new(AlwaysAllow);
        config.apis = server.apis.clone();
        let listening =
            config.complete().expect("a valid configuration").listen().await.expect("a free port");
        let ca: PathBuf = pki.ca_certificate;
        let target = Target::new(listening.local_addr(), &ca, Protocol::Http1);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(listening.run(async { drop(stopped.await) }));
        Self { server, target, stop: Some(stop), task, _directory: directory }
    }

    async fn connect(&self, query: &str, protocol: Option<&str>) -> (Socket, Response) {
        let stream = self.target.connect_tls().await.expect("a connection");
        let uri = format!("wss://localhost{WIDGETS}?watch=1&{query}");
        let mut request = uri.into_client_request().expect("a request");
        if let Some(protocol) = protocol {
            request.headers_mut().insert("sec-websocket-protocol", protocol.parse().expect("text"));
        }
        timeout(SOON, client_async(request, stream)).await.expect("in time").expect("a websocket")
    }
}

fn version() -> Version {
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

async fn next(socket: &mut Socket) -> Option<Message> {
    let message = timeout(SOON, socket.next()).await.expect("in time")?;
    Some(message.expect("a good message"))
}

async fn event(socket: &mut Socket) -> Value {
    match next(socket).await.expect("a message") {
        Message::Text(text) => serde_json::from_str(text.as_str()).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_is_a_message() {
    let running = Running::start().await;
    let created = running.server.create("a", "one").await;
    let (mut socket, answer) = running.connect("", Some("foo")).await;
    assert_eq!(answer.headers()["sec-websocket-protocol"], "foo");
    assert_eq!(event(&mut socket).await, json!({"type": "ADDED", "object": created}));
    socket.send(Message::Ping("hello".into())).await.expect("sent");
    assert_eq!(next(&mut socket).await, Some(Message::Pong("hello".into())));
    socket.send(Message::Text("ignored".into())).await.expect("sent");
    running.server.json("POST", WIDGETS, &widget("b", "x")).await;
    assert_eq!(event(&mut socket).await["object"]["metadata"]["name"], "b");
    socket.close(None).await.expect("closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_ends_in_its_time_and_with_the_server() {
    let mut running = Running::start().await;
    let (mut socket, _) = running.connect("timeoutSeconds=1", None).await;
    let Some(Message::Close(Some(goodbye))) = next(&mut socket).await else { panic!("no goodbye") };
    assert_eq!(u16::from(goodbye.code), 1000);

    let (mut socket, _) = running.connect("allowWatchBookmarks=1", None).await;
    assert_eq!(event(&mut socket).await["type"], "BOOKMARK");
    running.stop.take().expect("stopped once").send(()).expect("the server runs");
    assert!(matches!(next(&mut socket).await, Some(Message::Close(_))));
    drop(socket);
    timeout(SOON, running.task).await.expect("in time").expect("no panic");
}
