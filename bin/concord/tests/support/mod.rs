//! Starts the real program and talks to it.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use concord_server::test_client::{Answer, Protocol, TestClient};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// Far longer than any step takes.
pub const SOON: Duration = Duration::from_secs(60);

/// A running `concord serve`, killed when dropped.
pub struct Program {
    child: Child,
    pub address: SocketAddr,
    ca: PathBuf,
}

/// How a program that was not meant to keep running ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concord"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn serve_arguments<'a>(data_dir: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let data_dir = data_dir.to_str().expect("test paths are text");
    [&["serve", "--bind-address=127.0.0.1", "--secure-port=0", "--data-dir", data_dir], more].concat()
}

/// Runs the program to its end.
pub async fn run(arguments: &[&str]) -> Ended {
    let output = timeout(SOON, command(arguments).output()).await.expect("it ends").expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ended { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs `concord serve` where it is expected to refuse.
pub async fn refused(data_dir: &Path, more: &[&str]) -> Ended {
    let ended = run(&serve_arguments(data_dir, more)).await;
    assert!(!ended.status.success(), "it should have refused, but said {}", ended.stdout);
    ended
}

impl Program {
    /// Starts a server on any free port and waits until it says where it is.
    pub async fn start(data_dir: &Path) -> Self {
        Self::start_with(data_dir, &[]).await
    }

    pub async fn start_with(data_dir: &Path, more: &[&str]) -> Self {
        let mut child = command(&serve_arguments(data_dir, more)).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let first = timeout(SOON, lines.next_line()).await.expect("it says something").expect("text");
        let Some(first) = first else {
            let mut stderr = String::new();
            child.stderr.take().expect("stderr is piped").read_to_string(&mut stderr).await.expect("text");
            panic!("the server did not start: {stderr}");
        };
        let address = first.split_once("https://").expect("an address").1.parse().expect("an address");
        Self { child, address, ca: data_dir.join("pki/ca.crt") }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it is running")
    }

    pub async fn get(&self, protocol: Protocol, path: &str) -> Answer {
        let mut client = TestClient::connect(self.address, &self.ca, protocol).await.expect("a connection");
        client.get(path).await.expect("an answer")
    }

    /// Waits until `/readyz` has this status.
    pub async fn ready(&self, status: u16) -> Answer {
        let answer = async {
            loop {
                let answer = self.get(Protocol::Http2, "/readyz?verbose").await;
                if answer.status == status {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, answer).await.expect("readiness changes")
    }

    /// Sends a signal by name, as an operator would.
    pub async fn signal(&self, name: &str) {
        let kill = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.pid())).status().await;
        assert!(kill.expect("a shell").success());
    }

    /// Waits for the end, and gives what was logged.
    pub async fn ended(mut self) -> Ended {
        let status = timeout(SOON, self.child.wait()).await.expect("it ends").expect("it can be waited for");
        let mut stderr = String::new();
        self.child.stderr.take().expect("stderr is piped").read_to_string(&mut stderr).await.expect("text");
        Ended { status, stdout: String::new(), stderr }
    }
}
