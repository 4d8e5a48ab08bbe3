//! Starts the real program and talks to it.

mod secrets;

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use concord_server::test_client::{Answer, Protocol, Target, TestClient};
use http::Method;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncWrite};

use self::secrets::Secrets;
pub(crate) use self::secrets::{CANARY, CANARY_ENCODED, key_material};

/// Far longer than any step takes.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// How often to look again at what is awaited.
const PAUSE: Duration = Duration::from_millis(10);

/// A running `concord serve`, killed when dropped.
pub(crate) struct Program {
    process: Process,
    pub(crate) address: SocketAddr,
    ca: PathBuf,
}

/// How a program ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A child whose output goes to files, so that nothing it says can hold it up.
struct Process {
    child: Child,
    stdout: NamedTempFile,
    stderr: NamedTempFile,
    /// What must not be in its output.
    secrets: Option<Secrets>,
}

impl Process {
    fn spawn(arguments: &[&str]) -> Self {
        Self::spawn_with(arguments, |_| {})
    }

    fn spawn_with(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let [stdout, stderr] = [(); 2].map(|()| NamedTempFile::new().expect("a file"));
        let output = |file: &NamedTempFile| Stdio::from(File::create(file.path()).expect("a file"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_concord"));
        command.args(arguments).stdin(Stdio::null()).stdout(output(&stdout)).stderr(output(&stderr));
        change(&mut command);
        let child = command.spawn().expect("the program starts");
        Self { child, stdout, stderr, secrets: Secrets::of(arguments) }
    }

    fn try_end(&mut self) -> Option<Ended> {
        let status = self.child.try_wait().expect("a child can be waited for")?;
        let (stdout, stderr) = self.output();
        Some(Ended { status, stdout, stderr })
    }

    fn output(&self) -> (String, String) {
        let text = |file: &NamedTempFile| fs::read_to_string(file.path()).expect("text");
        (text(&self.stdout), text(&self.stderr))
    }

    async fn end(&mut self) -> Ended {
        until("the program ends", || self.try_end()).await
    }

    /// The first line on standard output, once it is complete.
    fn first_line(&self) -> Option<String> {
        let mut line = String::new();
        BufReader::new(File::open(self.stdout.path()).expect("a file")).read_line(&mut line).expect("text");
        line.strip_suffix('\n').map(str::to_owned)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
        // One panic is enough.
        if let Some(secrets) = self.secrets.as_ref().filter(|_| !std::thread::panicking()) {
            let (stdout, stderr) = self.output();
            secrets.assert_kept(&stdout, &stderr);
        }
    }
}

/// Looks again and again until there is something to see.
async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < SOON, "not in time: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

fn serve_arguments<'a>(data_dir: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let data_dir = data_dir.to_str().expect("test paths are text");
    [&["serve", "--bind-address=127.0.0.1", "--secure-port=0", "--data-dir", data_dir], more].concat()
}

/// Runs the program to its end.
pub(crate) async fn run(arguments: &[&str]) -> Ended {
    Process::spawn(arguments).end().await
}

/// Runs the program until something is so, and then sends it a signal.
pub(crate) async fn run_until(arguments: &[&str], is_so: impl AsyncFn() -> bool, signal: &str) -> Ended {
    let mut process = Process::spawn(arguments);
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < SOON, "not in time: the program does what it should");
        tokio::time::sleep(PAUSE).await;
    }
    send_signal(process.child.id(), signal);
    process.end().await
}

fn send_signal(pid: u32, name: &str) {
    let kill = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status();
    assert!(kill.expect("a shell").success());
}

/// Runs `concord serve` where it is expected to refuse.
pub(crate) async fn refused(data_dir: &Path, more: &[&str]) -> Ended {
    let ended = run(&serve_arguments(data_dir, more)).await;
    assert!(!ended.status.success(), "it should have refused, but said {}", ended.stdout);
    ended
}

impl Program {
    /// Starts a server on any free port and waits until it says where it is.
    pub(crate) async fn start(data_dir: &Path) -> Self {
        Self::start_with(data_dir, &[]).await
    }

    pub(crate) async fn start_with(data_dir: &Path, more: &[&str]) -> Self {
        Self::start_as(data_dir, more, |_| {}).await
    }

    /// Starts a server with something else about its process.
    pub(crate) async fn start_as(data_dir: &Path, more: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut process = Process::spawn_with(&serve_arguments(data_dir, more), change);
        let first = until("the server says where it is", || {
            if let Some(ended) = process.try_end() {
                panic!("the server did not start: {}", ended.stderr);
            }
            process.first_line()
        });
        let first = first.await;
        let address = first.split_once("https://").expect("an address").1.parse().expect("an address");
        Self { process, address, ca: data_dir.join("pki/ca.crt") }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// What it has said so far to whoever looks after it.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.process.stderr.path()).expect("text")
    }

    pub(crate) async fn get(&self, protocol: Protocol, path: &str) -> Answer {
        self.stranger(protocol).await.get(path).await.expect("an answer")
    }

    /// A connection of somebody without a certificate, who can only be known by a token.
    pub(crate) async fn stranger(&self, protocol: Protocol) -> TestClient {
        TestClient::connect(self.address, &self.ca, protocol).await.expect("a connection")
    }

    /// A connection as the administrator.
    pub(crate) async fn admin(&self, protocol: Protocol) -> TestClient {
        self.target(protocol).connect().await.expect("a connection")
    }

    fn target(&self, protocol: Protocol) -> Target {
        let pki = self.ca.parent().expect("a directory");
        Target::new(self.address, &self.ca, protocol)
            .with_identity(&pki.join("admin.crt"), &pki.join("admin.key"))
    }

    /// A connection as the administrator, for HTTP/1.1, on which nothing was said yet.
    pub(crate) async fn stream(&self) -> impl AsyncRead + AsyncWrite + Unpin + use<> {
        self.target(Protocol::Http1).connect_tls().await.expect("a connection")
    }

    /// Waits until `/readyz` has this status.
    pub(crate) async fn ready(&self, status: u16) -> Answer {
        let begin = Instant::now();
        loop {
            let answer = self.get(Protocol::Http2, "/readyz?verbose").await;
            if answer.status == status {
                return answer;
            }
            assert!(begin.elapsed() < SOON, "not in time: readiness is {status}, but {}", answer.body);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends a signal by name, as an operator would.
    pub(crate) fn signal(&self, name: &str) {
        send_signal(self.pid(), name);
    }

    /// Waits for the end.
    pub(crate) async fn ended(mut self) -> Ended {
        self.process.end().await
    }
}

/// Sends JSON, or a merge patch, and answers with the status, the body and the warnings.
pub(crate) async fn send(
    client: &mut TestClient,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, Value, Vec<String>) {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = if body.is_null() { String::new() } else { body.to_string() };
    let answer = client.exchange(method, path, &[("content-type", kind)], bytes.into()).await;
    let answer = answer.expect("an answer");
    let warnings = answer.headers.get_all("warning").iter();
    let warnings = warnings.map(|warning| warning.to_str().expect("text").to_owned()).collect();
    // A server that is about to end says in plain words, as kube-apiserver does, that it should be asked later.
    let is_text =
        answer.headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let body = if is_text { answer.body.into() } else { serde_json::from_str(&answer.body).expect("JSON") };
    (answer.status, body, warnings)
}

/// The kube client, as the administrator of the server whose data this is.
pub(crate) async fn client(data: &Path) -> Client {
    Client::try_from(config(data).await).expect("a client")
}

/// A client that is content with the first answer, also when that is to try again.
pub(crate) async fn client_that_asks_once(data: &Path) -> Client {
    let mut config = config(data).await;
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

async fn config(data: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(data.join("admin.kubeconfig")).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.expect("a configuration")
}
