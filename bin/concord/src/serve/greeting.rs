//! What a server says when it is there.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    process,
};

use crate::{engine::Engine, say, version};

/// Says where the server is and what to type next.
pub(super) fn greet(url: &str, engine: &Engine, data_dir: &Path, kubeconfig: &Path) -> anyhow::Result<()> {
    let (data_dir, kubeconfig) = (absolute(data_dir), absolute(kubeconfig));
    say(&format!(
        "Concord {version} is serving {url}\n\
         \x20 data  {data} ({engine})\n\
         \x20 try   export KUBECONFIG={kubeconfig}\n\
         \x20       kubectl get namespaces\n\
         \x20 stop  Ctrl-C or kill {pid}",
        version = version::CONCORD,
        data = data_dir.display(),
        engine = engine.describe(),
        kubeconfig = shell_word(&kubeconfig.to_string_lossy()),
        pid = process::id(),
    ))
}

/// Where a client on this machine finds a server that listens on `address`.
pub(super) fn dialable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// `word` such that a shell takes it for one word.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_becomes_one_to_dial() {
        for (listening, dialable_at) in
            [("0.0.0.0:6443", "127.0.0.1:6443"), ("[::]:6443", "[::1]:6443"), ("10.0.0.7:1", "10.0.0.7:1")]
        {
            assert_eq!(dialable(listening.parse().expect("an address")).to_string(), dialable_at);
        }
    }

    #[test]
    fn paths_survive_the_shell() {
        assert_eq!(shell_word("/var/lib/concord-1/ca.crt"), "/var/lib/concord-1/ca.crt");
        assert_eq!(shell_word("/my data/it's"), r"'/my data/it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
