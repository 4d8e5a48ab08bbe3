//! Connections through a proxy that is asked with CONNECT.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::TlsConnector;

use crate::{Dial, Io};

/// How long the head of a proxy's answer may be.
const MOST: usize = 8 * 1024;

/// Reaches an address through a proxy. What the proxy is reached by is another [`Dial`].
pub struct TunnelDial {
    /// Reaches the proxy.
    pub proxy: Arc<dyn Dial>,
    /// Where the proxy is to lead.
    pub target: SocketAddr,
}

/// Reaches whoever listens on a socket of this machine.
#[derive(Debug, Clone)]
pub struct UnixDial(pub PathBuf);

/// Reaches a host by its name.
#[derive(Debug, Clone)]
pub struct HostDial {
    /// The name, or a number.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Reaches the same with TLS.
pub struct TlsDial {
    dial: Arc<dyn Dial>,
    tls: TlsConnector,
    server_name: ServerName<'static>,
}

impl TlsDial {
    /// Believes a server of this name as `tls` says.
    pub fn new(dial: Arc<dyn Dial>, tls: ClientConfig, server_name: ServerName<'static>) -> Self {
        Self { dial, tls: TlsConnector::from(Arc::new(tls)), server_name }
    }
}

#[async_trait]
impl Dial for UnixDial {
    async fn dial(&self) -> io::Result<Box<dyn Io>> {
        Ok(Box::new(UnixStream::connect(&self.0).await?))
    }
}

#[async_trait]
impl Dial for HostDial {
    async fn dial(&self) -> io::Result<Box<dyn Io>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

#[async_trait]
impl Dial for TlsDial {
    async fn dial(&self) -> io::Result<Box<dyn Io>> {
        let stream = self.dial.dial().await?;
        Ok(Box::new(self.tls.connect(self.server_name.clone(), stream).await?))
    }
}

#[async_trait]
impl Dial for TunnelDial {
    async fn dial(&self) -> io::Result<Box<dyn Io>> {
        let mut stream = self.proxy.dial().await?;
        let target = self.target;
        let ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(ask.as_bytes()).await?;
        stream.flush().await?;
        let head = head(&mut stream).await?;
        match head.split(' ').nth(1) {
            Some("200") => Ok(stream),
            status => {
                let status = status.unwrap_or("nothing sensible");
                Err(io::Error::new(
                    io::ErrorKind::ConnectionRefused,
                    format!("the proxy answered with {status}"),
                ))
            }
        }
    }
}

/// The head of an answer, and nothing of what follows: that is not the proxy's any more.
async fn head(stream: &mut Box<dyn Io>) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MOST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer of the proxy has no end"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// A proxy that answers so, whatever it is asked.
    struct Answers(&'static str);

    #[async_trait]
    impl Dial for Answers {
        async fn dial(&self) -> io::Result<Box<dyn Io>> {
            let (near, mut far) = duplex(64 * 1024);
            let answer = self.0;
            tokio::spawn(async move {
                let mut asked = vec![0; 60];
                let read = far.read(&mut asked).await?;
                assert!(
                    asked[..read]
                        .starts_with(b"CONNECT 10.0.0.1:6443 HTTP/1.1\r\nHost: 10.0.0.1:6443\r\n\r\n")
                );
                far.write_all(answer.as_bytes()).await?;
                let mut rest = Vec::new();
                far.read_to_end(&mut rest).await
            });
            Ok(Box::new(near))
        }
    }

    async fn through(answer: &'static str) -> io::Result<Box<dyn Io>> {
        let target = "10.0.0.1:6443".parse().expect("an address");
        TunnelDial { proxy: Arc::new(Answers(answer)), target }.dial().await
    }

    #[tokio::test]
    async fn what_follows_the_answer_of_the_proxy_is_the_other_sides() {
        let mut stream =
            through("HTTP/1.1 200 Connection established\r\nx: y\r\n\r\nhello").await.expect("a tunnel");
        let mut said = [0; 5];
        stream.read_exact(&mut said).await.expect("bytes");
        assert_eq!(&said, b"hello");
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_is_not_taken_for_the_other_side() {
        for (answer, complaint) in [
            ("HTTP/1.1 403 Forbidden\r\n\r\n", "answered with 403"),
            ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "answered with 502"),
            ("nonsense\r\n\r\n", "nothing sensible"),
        ] {
            let error = through(answer).await.err().expect("refused").to_string();
            assert!(error.contains(complaint), "{error}");
        }
        let endless: &'static str = Box::leak("x".repeat(MOST + 1).into_boxed_str());
        let error = through(endless).await.err().expect("refused").to_string();
        assert!(error.contains("has no end"), "{error}");
    }
}
