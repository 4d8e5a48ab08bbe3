//! An etcd that is not etcd, or not ours: typed errors in time, no panic, no hang.

use std::{net::SocketAddr, path::Path, time::Duration};

use concord_store::{Error, Scan, Store, Txn};
use concord_store_etcd::{ClientCertificate, Config, EtcdStore, TlsConfig};
use concord_testing::etcd::{Cluster, Options, TlsFiles};
use futures_util::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket},
    time::timeout,
};

mod common;
use common::{config, put, within};

/// A server that answers every connection with the same bytes, and then hangs or closes.
async fn server(answer: &'static [u8], close: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 1024];
                let Ok(_) = stream.read(&mut request).await else { return };
                stream.write_all(answer).await.ok();
                if !close {
                    while let Ok(1..) = stream.read(&mut request).await {}
                }
            });
        }
    });
    address
}

async fn is_refused(config: Config) {
    let name = config.endpoints.join(",");
    let store = EtcdStore::open(config).await.expect("nothing is wrong with the configuration");
    let read = within(store.current_revision()).await;
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{name}: {read:?}");
    let scan = within(store.scan(Scan::key("k").at(7))).await;
    assert!(matches!(scan, Err(Error::Unavailable { .. })), "{name}: {scan:?}");
    let write = within(store.transact(Txn::new().put("k", "v"))).await;
    assert!(
        matches!(write, Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. })),
        "{name}: {write:?}"
    );
    let ttl = within(store.transact(Txn::new().put_with_ttl("k", "v", Duration::from_secs(9)))).await;
    assert!(matches!(ttl, Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. })), "{name}: {ttl:?}");
    let health = within(store.health()).await;
    assert!(matches!(health, Err(Error::Unavailable { .. })), "{name}: {health:?}");
    let follow = timeout(Duration::from_secs(1), store.follow(5).next()).await;
    assert!(follow.is_err(), "{name}: a follower waits outages out: {follow:?}");
}

fn impatient(endpoint: String) -> Config {
    let mut config = config(vec![endpoint]);
    config.request_timeout = Duration::from_secs(1);
    config.dial_timeout = Duration::from_millis(500);
    config.health_timeout = Duration::from_secs(1);
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_not_etcd() {
    let answers: [(&[u8], bool); 6] = [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true),
        (b"SSH-2.0-OpenSSH_9.2\r\n", false),
        (&[0; 4096], false),
        (&[0xff; 4096], true),
        (b"", true),
        (b"", false),
    ];
    let checks = answers.map(|(answer, close)| async move {
        is_refused(impatient(format!("http://{}", server(answer, close).await))).await;
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_listens() {
    // Bound, so that nobody else gets the port, and without anybody who listens.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let port = socket.local_addr().expect("an address").port();
    is_refused(impatient(format!("http://127.0.0.1:{port}"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_another_cluster() {
    let (mut ours, other) =
        (Cluster::single().await.expect("an etcd"), Cluster::single().await.expect("another"));
    let mut config = config([ours.endpoints(), other.endpoints()].concat());
    config.request_timeout = Duration::from_secs(2);
    let store = EtcdStore::open(config).await.expect("a store");
    put(&store, "k", "v").await;
    ours.kill(0).expect("a kill");
    let read = within(store.current_revision()).await;
    let Err(Error::Unavailable { reason }) = &read else { panic!("the revision of another log: {read:?}") };
    assert!(reason.contains("cluster"), "{reason}");
}

async fn tls_cluster() -> (Cluster, TlsConfig) {
    let cluster = Cluster::start(Options { tls: true, ..Options::default() }).await.expect("an etcd");
    let files = cluster.tls().expect("TLS files").clone();
    let client = ClientCertificate { cert_file: files.client_cert, key_file: files.client_key };
    (cluster, TlsConfig { ca_file: files.ca, client_certificate: Some(client) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_certificates_open_the_door() {
    let (cluster, tls) = tls_cluster().await;
    let mut config = config(cluster.endpoints());
    config.tls = Some(tls);
    let store = EtcdStore::open(config).await.expect("a store");
    let start = put(&store, "k", "v").await;
    let last = put(&store, "k", "w").await;
    common::follow_until(&mut store.follow(start), start, last).await;
    within(store.health()).await.expect("healthy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_that_does_not_match() {
    let (cluster, tls) = tls_cluster().await;
    let (stranger, strange_tls) = tls_cluster().await;
    let plain = Cluster::single().await.expect("an etcd");
    let with = |endpoint: &str, tls: Option<TlsConfig>| Config { tls, ..impatient(endpoint.to_owned()) };
    let url = &cluster.endpoints()[0];
    is_refused(with(url, Some(strange_tls.clone()))).await;
    is_refused(with(url, Some(TlsConfig { client_certificate: None, ..tls.clone() }))).await;
    let identity = strange_tls.client_certificate;
    is_refused(with(url, Some(TlsConfig { client_certificate: identity, ..tls.clone() }))).await;
    is_refused(with(&url.replace("https", "http"), None)).await;
    is_refused(with(&plain.endpoints()[0].replace("http", "https"), Some(tls))).await;
    drop(stranger);
}

#[tokio::test]
async fn configurations_that_make_no_sense() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = TlsFiles::create(directory.path()).expect("certificates");
    let tls = |ca_file: &Path| TlsConfig { ca_file: ca_file.to_owned(), client_certificate: None };
    let with = |tls, url: &str| Config { tls: Some(tls), ..Config::new([url]) };
    let swapped =
        ClientCertificate { cert_file: files.client_key.clone(), key_file: files.client_cert.clone() };
    let swapped = TlsConfig { client_certificate: Some(swapped), ..tls(&files.ca) };
    let https = "https://127.0.0.1:2379";
    let table = [
        ("no etcd endpoint", Config::new(Vec::<String>::new())),
        ("http:// or https://", Config::new(["127.0.0.1:2379"])),
        ("http:// or https://", Config::new(["ftp://127.0.0.1:2379"])),
        ("endpoint", Config::new(["http://"])),
        ("endpoint", Config::new(["not a url"])),
        ("CA file", Config::new(["https://127.0.0.1:2379"])),
        ("not https", with(tls(&files.ca), "http://127.0.0.1:2379")),
        ("/does/not/exist", with(tls(Path::new("/does/not/exist")), https)),
        ("reading", with(tls(directory.path()), https)),
        ("no PEM certificate", with(tls(&files.client_key), https)),
        ("endpoint", with(swapped, https)),
    ];
    for (complaint, config) in table {
        let answer = EtcdStore::open(config).await.map(|_| ());
        let Err(Error::Invalid(text)) = &answer else { panic!("{complaint}: {answer:?}") };
        assert!(text.contains(complaint), "{text} should mention {complaint:?}");
    }
}
