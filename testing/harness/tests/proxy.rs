//! The proxy does to connections what it says.

use std::{io::ErrorKind, net::SocketAddr, time::Duration};

use concord_testing::proxy::{Fault, Proxy};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// A server that sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await.ok();
            });
        }
    });
    address
}

async fn ping(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"ping").await?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await?;
    assert_eq!(&answer, b"ping");
    Ok(())
}

#[tokio::test]
async fn data_passes_also_with_delay() {
    let proxy = Proxy::start(echo().await, 1).await.expect("a proxy");
    let mut stream = TcpStream::connect(proxy.address()).await.expect("a connection");
    ping(&mut stream).await.expect("an echo");
    proxy.set(Fault::Delay(Duration::from_millis(20)));
    ping(&mut stream).await.expect("an echo, later");
}

#[tokio::test]
async fn a_black_hole_holds_data_until_it_ends() {
    let proxy = Proxy::start(echo().await, 1).await.expect("a proxy");
    let mut stream = TcpStream::connect(proxy.address()).await.expect("a connection");
    proxy.set(Fault::BlackHole);
    let mut second = TcpStream::connect(proxy.address()).await.expect("connections are taken");
    assert!(timeout(Duration::from_millis(200), ping(&mut stream)).await.is_err());
    assert!(timeout(Duration::from_millis(200), ping(&mut second)).await.is_err());
    proxy.set(Fault::None);
    let mut late = [0; 4];
    stream.read_exact(&mut late).await.expect("what was held comes");
    second.read_exact(&mut late).await.expect("also here");
}

#[tokio::test]
async fn a_cut_closes_and_a_refusal_refuses() {
    let proxy = Proxy::start(echo().await, 1).await.expect("a proxy");
    let mut stream = TcpStream::connect(proxy.address()).await.expect("a connection");
    ping(&mut stream).await.expect("an echo");
    proxy.set(Fault::Refuse);
    ping(&mut stream).await.expect("existing connections go on");
    proxy.cut();
    assert!(timeout(Duration::from_secs(10), ping(&mut stream)).await.expect("no hang").is_err());
    let refused = async {
        loop {
            // Taken just before the proxy stopped listening.
            if let Err(error) = TcpStream::connect(proxy.address()).await {
                return error.kind();
            }
        }
    };
    let refused = timeout(Duration::from_secs(10), refused).await.expect("it stops listening");
    assert_eq!(refused, ErrorKind::ConnectionRefused);
    proxy.set(Fault::None);
    let reconnect = async {
        loop {
            match TcpStream::connect(proxy.address()).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let mut stream = timeout(Duration::from_secs(10), reconnect).await.expect("it listens again");
    ping(&mut stream).await.expect("an echo");
}
