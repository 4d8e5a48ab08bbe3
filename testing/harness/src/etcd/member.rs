use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

/// What every version logs when it begins to serve.
const SERVES: &str = "ready to serve client requests";

/// How often a member is asked whether it is ready.
const POLL: Duration = Duration::from_millis(50);

/// The ports of a member. The metrics port answers health checks without TLS.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    client: u16,
    pub(super) peer: u16,
    metrics: u16,
}

impl Ports {
    /// Ports that are free now.
    pub(super) fn find() -> anyhow::Result<Self> {
        let mut held = Vec::new();
        let mut port = || -> anyhow::Result<u16> {
            let listener =
                std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
            let port = listener.local_addr()?.port();
            // Held until all three are found, or they could be the same.
            held.push(listener);
            Ok(port)
        };
        Ok(Self { client: port()?, peer: port()?, metrics: port()? })
    }
}

/// One etcd process, or the place of one that was killed.
#[derive(Debug)]
pub(super) struct Member {
    binary: PathBuf,
    args: Vec<String>,
    ports: Ports,
    tls: bool,
    log: PathBuf,
    /// How long the log was when the process started.
    logged_before: usize,
    process: Option<Child>,
}

impl Member {
    pub(super) fn start(
        binary: &Path,
        directory: &Path,
        n: usize,
        ports: Ports,
        tls: bool,
        shared: &[String],
    ) -> anyhow::Result<Self> {
        let client = format!("{}://127.0.0.1:{}", scheme(tls), ports.client);
        let peer = format!("http://127.0.0.1:{}", ports.peer);
        let own = [
            ("--name", format!("m{n}")),
            ("--data-dir", directory.join(format!("m{n}")).display().to_string()),
            ("--listen-client-urls", client.clone()),
            ("--advertise-client-urls", client),
            ("--listen-peer-urls", peer.clone()),
            ("--initial-advertise-peer-urls", peer),
            ("--listen-metrics-urls", format!("http://127.0.0.1:{}", ports.metrics)),
        ];
        let mut args: Vec<String> =
            own.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
        args.extend_from_slice(shared);
        let log = directory.join(format!("m{n}.log"));
        let mut member =
            Self { binary: binary.to_owned(), args, ports, tls, log, logged_before: 0, process: None };
        member.restart()?;
        Ok(member)
    }

    pub(super) fn restart(&mut self) -> anyhow::Result<()> {
        ensure!(self.process.is_none(), "the member runs");
        self.logged_before = self.logged().len();
        let log =
            File::options().create(true).append(true).open(&self.log).context("opening the log of etcd")?;
        let child = Command::new(&self.binary)
            .args(&self.args)
            // The environment must not configure it: every flag of etcd can also be a variable.
            .env_clear()
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", self.binary.display()))?;
        self.process = Some(child);
        Ok(())
    }

    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill().context("killing etcd")?;
            process.wait().context("waiting for etcd to end")?;
        }
        Ok(())
    }

    pub(super) fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let pid = self.process.as_ref().context("the member was killed")?.id();
        // The shell's own kill: there is no safe call for it in the standard library.
        let status = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status()?;
        ensure!(status.success(), "kill -{signal} {pid} fails");
        Ok(())
    }

    /// The process, if it runs; the one that is no process otherwise.
    pub(super) fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, std::process::Child::id)
    }

    pub(super) fn client_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports.client).into()
    }

    pub(super) fn client_url(&self) -> String {
        format!("{}://{}", scheme(self.tls), self.client_address())
    }

    /// Waits until the member is healthy; one that was killed counts as ready.
    pub(super) async fn ready(&mut self) -> anyhow::Result<()> {
        while let Some(process) = &mut self.process {
            if let Some(status) = process.try_wait()? {
                bail!("etcd ended with {status}:\n{}", self.log_tail());
            }
            if self.serves() && self.is_healthy().await {
                break;
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Whether this process said so: who answers at its port may be an etcd of somebody else, who took the port first.
    fn serves(&self) -> bool {
        let logged = self.logged();
        logged.get(self.logged_before..).is_some_and(|since| String::from_utf8_lossy(since).contains(SERVES))
    }

    async fn is_healthy(&self) -> bool {
        self.get("/health").await.is_some_and(|body| body.contains(r#""health":"true""#))
    }

    pub(super) async fn is_leader(&self) -> bool {
        self.process.is_some()
            && self
                .get("/metrics")
                .await
                .is_some_and(|body| body.lines().any(|line| line == "etcd_server_is_leader 1"))
    }

    fn logged(&self) -> Vec<u8> {
        std::fs::read(&self.log).unwrap_or_default()
    }

    /// The last lines the member logged.
    pub(super) fn log_tail(&self) -> String {
        let log = self.logged();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    async fn get(&self, path: &str) -> Option<String> {
        let fetch = async {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.metrics)).await?;
            let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut body = String::new();
            stream.read_to_string(&mut body).await?;
            std::io::Result::Ok(body)
        };
        // A member that hangs or has no leader yet just is not ready.
        timeout(Duration::from_secs(5), fetch).await.ok()?.ok()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Also ends a stopped process. Nobody is left to tell if it fails.
        self.kill().ok();
    }
}

fn scheme(tls: bool) -> &'static str {
    if tls { "https" } else { "http" }
}
