//! Runs a bookshelf. See `docs/extension-servers.md`.

use std::{
    io::Write as _,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use clap::Parser;
use concord_bookshelf::{Bookshelf, Options};

/// An extension API server that keeps books.
///
/// It prints the APIService to register it with, and serves until it is told to stop.
#[derive(Debug, Parser)]
#[command(name = "bookshelf", version)]
struct Arguments {
    /// Where its books and certificates are kept; made if missing.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    bind_address: IpAddr,
    /// The port to listen on; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 7443)]
    secure_port: u16,
    /// The authority of the server in front of it (PEM): front-proxy-ca.crt of its PKI.
    #[arg(long, value_name = "FILE")]
    requestheader_client_ca_file: PathBuf,
    /// The Service that it is behind, as NAMESPACE/NAME.
    #[arg(long, value_name = "SERVICE", default_value = "default/bookshelf", value_parser = service)]
    service: (String, String),
}

fn service(text: &str) -> Result<(String, String), String> {
    let (namespace, name) = text.split_once('/').ok_or("not NAMESPACE/NAME")?;
    Ok((namespace.to_owned(), name.to_owned()))
}

fn main() -> anyhow::Result<()> {
    concord_server::runtime()?.block_on(serve())
}

async fn serve() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let options = Options {
        data_dir: arguments.data_dir,
        address: SocketAddr::new(arguments.bind_address, arguments.secure_port),
        front_proxy_ca: arguments.requestheader_client_ca_file,
        service: arguments.service,
    };
    let bookshelf = Bookshelf::open(options).await?;
    let mut out = std::io::stdout();
    writeln!(out, "# Serving https://{}. Register it with:", bookshelf.address())?;
    writeln!(out, "{:#}", bookshelf.api_service())?;
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    bookshelf.run(stop).await;
    Ok(())
}
