//! Real etcd clusters of one or more members.

mod member;
mod tls;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, bail};
use tempfile::TempDir;

use member::{Member, Ports};
pub use tls::TlsFiles;

/// Environment variable that names the etcd to test with; otherwise `etcd` is looked up on `PATH`.
pub const BINARY_VARIABLE: &str = "CONCORD_ETCD";

/// Starting, electing and joining takes a second; a machine full of tests takes longer.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Somebody else may take a port between finding and using it.
const START_ATTEMPTS: usize = 5;

/// What kind of cluster to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many members.
    pub members: usize,
    /// Serve clients over TLS and require certificates of them.
    pub tls: bool,
    /// Further arguments of every member.
    pub args: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { members: 1, tls: false, args: Vec::new() }
    }
}

/// A running cluster. Dropping it kills its members and removes their data.
#[derive(Debug)]
pub struct Cluster {
    // Before the directory, so that nobody writes into it any more when it is removed.
    members: Vec<Member>,
    tls: Option<TlsFiles>,
    _directory: TempDir,
}

impl Cluster {
    /// A single member without TLS.
    ///
    /// # Errors
    ///
    /// See [`Self::start`].
    pub async fn single() -> anyhow::Result<Self> {
        Self::start(Options::default()).await
    }

    /// Starts a cluster and waits until every member serves.
    ///
    /// # Errors
    ///
    /// When there is no etcd, which the error says how to install, or when it does not come up; the error
    /// then shows the end of its log.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let binary = binary()?;
        for attempt in 1.. {
            match Self::try_start(&binary, &options).await {
                Err(error)
                    if attempt < START_ATTEMPTS
                        && format!("{error:#}").contains("address already in use") => {}
                outcome => return outcome,
            }
        }
        unreachable!("the last attempt returns")
    }

    async fn try_start(binary: &Path, options: &Options) -> anyhow::Result<Self> {
        let directory =
            tempfile::Builder::new().prefix("concord-etcd-").tempdir().context("a temporary directory")?;
        let tls = options.tls.then(|| TlsFiles::create(directory.path())).transpose()?;
        let ports = (0..options.members).map(|_| Ports::find()).collect::<Result<Vec<_>, _>>()?;
        let peers: Vec<String> = ports
            .iter()
            .enumerate()
            .map(|(n, ports)| format!("m{n}=http://127.0.0.1:{}", ports.peer))
            .collect();
        let token = directory.path().file_name().map(|name| name.to_string_lossy().into_owned());
        let shared = [
            vec!["--initial-cluster".to_owned(), peers.join(",")],
            vec!["--initial-cluster-token".to_owned(), token.unwrap_or_default()],
            tls.as_ref().map(TlsFiles::etcd_args).unwrap_or_default(),
            options.args.clone(),
        ]
        .concat();
        let members = ports
            .into_iter()
            .enumerate()
            .map(|(n, ports)| Member::start(binary, directory.path(), n, ports, tls.is_some(), &shared))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mut cluster = Self { members, tls, _directory: directory };
        cluster.ready().await?;
        Ok(cluster)
    }

    /// The number of members.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The client URLs of all members.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::client_url).collect()
    }

    /// Where the client port of member `n` is, for a proxy in front of it.
    pub fn client_address(&self, n: usize) -> std::net::SocketAddr {
        self.members[n].client_address()
    }

    /// The process of member `n`; 0 if it was killed.
    pub fn pid(&self, n: usize) -> u32 {
        self.members[n].pid()
    }

    /// The files a client of a TLS cluster needs.
    pub fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    /// Kills member `n` as a crash would.
    ///
    /// # Errors
    ///
    /// When the process cannot be killed.
    pub fn kill(&mut self, n: usize) -> anyhow::Result<()> {
        self.members[n].kill()
    }

    /// Stops member `n` without closing its connections, as a hanging machine would.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn pause(&mut self, n: usize) -> anyhow::Result<()> {
        self.members[n].signal("STOP")
    }

    /// Lets a paused member go on.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn resume(&mut self, n: usize) -> anyhow::Result<()> {
        self.members[n].signal("CONT")
    }

    /// Starts a killed member again on its data and ports, without waiting for it.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub fn restart(&mut self, n: usize) -> anyhow::Result<()> {
        self.members[n].restart()
    }

    /// Waits until every member that runs says that it is healthy. One that died is an error.
    ///
    /// # Errors
    ///
    /// When a member exits or does not become healthy; shows the end of its log.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        for member in &mut self.members {
            tokio::time::timeout(READY_WITHIN, member.ready()).await.unwrap_or_else(|_| {
                bail!("etcd is not healthy after {READY_WITHIN:?}:\n{}", member.log_tail())
            })?;
        }
        Ok(())
    }

    /// Waits until a member that runs says that it is the leader.
    ///
    /// # Errors
    ///
    /// When none does.
    pub async fn leader(&self) -> anyhow::Result<usize> {
        let find = async {
            loop {
                for (n, member) in self.members.iter().enumerate() {
                    if member.is_leader().await {
                        return n;
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(READY_WITHIN, find).await.context("the cluster has no leader")
    }
}

/// The etcd to run, after checking that it runs at all.
fn binary() -> anyhow::Result<PathBuf> {
    let binary = std::env::var_os(BINARY_VARIABLE).map_or_else(|| PathBuf::from("etcd"), PathBuf::from);
    match Command::new(&binary).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(binary),
        Ok(output) => {
            bail!("{} --version fails: {}", binary.display(), String::from_utf8_lossy(&output.stderr))
        }
        Err(error) => bail!(
            "{} cannot be run ({error}). These tests need a real etcd. On Debian:\n  \
             printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d  \
             # so that it is not started as a service\n  \
             apt-get install --no-install-recommends etcd-server && rm /usr/sbin/policy-rc.d\n\
             or set {BINARY_VARIABLE} to an etcd of 3.4 or later",
            binary.display()
        ),
    }
}
