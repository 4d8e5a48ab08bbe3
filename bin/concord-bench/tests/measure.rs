//! Measures a real server, shortly: every scenario gives numbers, and nothing of it is left behind.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// Far longer than a start takes.
const SOON: Duration = Duration::from_secs(60);

/// Where the server's program is, if it was built along: the tests of the whole workspace do that.
#[allow(clippy::print_stdout, reason = "says why there was nothing to test")]
fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_concord-bench")).with_file_name("concord");
    let built = program.is_file();
    if !built {
        println!("skipped: {} is not there", program.display());
    }
    built.then_some(program)
}

/// A server that ends with the test.
struct Server {
    child: Child,
    directory: TempDir,
}

impl Server {
    fn start(program: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        let child = Command::new(program)
            .args(["serve", "--bind-address=127.0.0.1", "--secure-port=0", "--data-dir"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(File::create(directory.path().join("stdout")).expect("a file"))
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self { child, directory };
        let begun = Instant::now();
        // Its first line, once it is complete, says where it is; the kubeconfig is there before.
        while !fs::read_to_string(server.path("stdout")).is_ok_and(|text| text.contains('\n')) {
            assert!(begun.elapsed() < SOON, "the server did not start");
            sleep(Duration::from_millis(10));
        }
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn bench(&self, arguments: &[&str]) -> Command {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_concord-bench"));
        bench
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.path("data/admin.kubeconfig"))
            .stdin(Stdio::null());
        bench
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn every_scenario_gives_numbers() {
    let Some(program) = program() else { return };
    let server = Server::start(&program);
    let (report, pid) = (server.path("report.json"), server.child.id().to_string());
    let arguments = [
        "run",
        "--objects=40",
        "--concurrency=4",
        "--duration=200ms",
        "--warmup=0s",
        "--watchers=8",
        "--watch-writes=40",
        "--watch-rate=100",
        "--pid",
        &pid,
    ];
    let output = server.bench(&arguments).arg("--json").arg(&report).output().expect("it runs");
    let (table, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{table}\n{complaint}");

    let report: Value = serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let measured: Vec<&str> = rows.iter().filter_map(|row| row["scenario"].as_str()).collect();
    for scenario in [
        "discovery",
        "discovery-aggregated",
        "create",
        "memory",
        "get",
        "list",
        "list-rv0",
        "list-paged",
        "update",
        "patch",
        "apply",
        "watch",
        "watch-paced",
        "delete",
    ] {
        assert!(measured.contains(&scenario), "{scenario} is not among {measured:?}");
        assert!(table.contains(scenario), "{scenario} is not in the table:\n{table}");
    }
    for row in rows {
        assert_eq!(row["failures"], 0, "{row}");
        let counts = row["scenario"] == "memory" || row["count"].as_u64().is_some_and(|count| count > 0);
        assert!(counts, "{row}");
    }
    let watch = rows.iter().find(|row| row["scenario"] == "watch").expect("a row");
    assert_eq!(watch["count"], 8 * 40, "every watcher sees every write");
}

#[test]
fn definitions_and_their_documents_are_measured() {
    let Some(program) = program() else { return };
    let server = Server::start(&program);
    let arguments = ["crds", "--definitions=6", "--fields=3", "--per-group=2", "--changes=2", "--later=0s"];
    let output = server.bench(&arguments).output().expect("it runs");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in ["all served after", "index shows a change after, p99", "one that is not new, p50"] {
        assert!(table.contains(line), "{line} is not in the table:\n{table}");
    }
}

#[test]
fn answers_can_be_decoded_and_servers_take_turns() {
    let Some(program) = program() else { return };
    let server = Server::start(&program);
    let decoded = [
        "run",
        "--only=get,list,list-paged",
        "--objects=8",
        "--concurrency=2",
        "--duration=50ms",
        "--decode",
    ];
    let output = server.bench(&decoded).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kubeconfig = server.path("data/admin.kubeconfig");
    for operation in ["create", "get"] {
        let output = Command::new(env!("CARGO_BIN_EXE_concord-bench"))
            .args(["turns", "--pairs=20", "--operation", operation])
            .arg("--first")
            .arg(&kubeconfig)
            .arg("--second")
            .arg(&kubeconfig)
            .output()
            .expect("it runs");
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(table.contains("the second of a pair takes"), "{table}");
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_says_so() {
    let Some(program) = program() else { return };
    let mut server = Server::start(&program);
    server.child.kill().expect("it runs");
    server.child.wait().expect("it ends");
    let output = server.bench(&["run", "--only=get", "--objects=1"]).output().expect("it runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(complaint.starts_with("error: "), "{complaint}");
}

#[test]
fn a_flood_is_measured_from_both_sides() {
    let Some(program) = program() else { return };
    let server = Server::start(&program);
    let (kubeconfig, pid) = (server.path("data/admin.kubeconfig"), server.child.id().to_string());
    let mut bench = Command::new(env!("CARGO_BIN_EXE_concord-bench"));
    bench.args(["flood", "--connections=4", "--duration=500ms", "--turn=300ms", "--pid", &pid]);
    bench.arg("--quiet").arg(&kubeconfig).arg("--flood").arg(&kubeconfig).stdin(Stdio::null());
    is_measured(&mut bench);
}

#[test]
fn a_flood_makes_users_of_its_own() {
    let Some(program) = program() else { return };
    let server = Server::start(&program);
    // Twice, for the first leaves nothing behind that the second could stumble over.
    for _ in 0..2 {
        let arguments = ["flood", "--connections=4", "--duration=500ms", "--turn=300ms"];
        let found = is_measured(&mut server.bench(&arguments));
        let memory = found.lines().find(|line| line.starts_with("memory ")).expect("a line");
        assert!(!memory.contains(" 0.0 MiB"), "the server says how much it has: {memory}");
    }
}

/// What is printed about a flood, which went well.
fn is_measured(bench: &mut Command) -> String {
    let output = bench.output().expect("it runs");
    let (found, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{found}\n{complaint}");
    for part in [" MiB\n", "quiet, idle ", "quiet, flooded ", " 0 lost, 0 hung\n", " x its idle value\n"] {
        assert!(found.contains(part), "{part:?} is not in\n{found}");
    }
    found.into_owned()
}
