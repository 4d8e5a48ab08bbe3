//! Project tasks, for people and CI alike: `cargo xtask setup` and `cargo xtask test`.
//!
//! Plain standard library, so that it builds in a moment on a fresh machine.

mod etcd;
mod fuzz;
mod step;

use std::{
    env,
    io::{self, Write as _},
    process::{Command, ExitCode, Stdio},
};

use step::{cargo, run};

const USAGE: &str = "usage: cargo xtask <task>

tasks:
  setup   install what the tests need (etcd, from Debian's packages)
  test    setup, then check formatting, lints and all tests
  fuzz    send requests made of random bytes through the whole server [seconds, default 600]";

fn main() -> ExitCode {
    let task = env::args().nth(1);
    let result = match task.as_deref() {
        Some("setup") => etcd::ensure(),
        Some("test") => test(),
        Some("fuzz") => fuzz::run(env::args().nth(2).as_deref()),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&format!("\n{message}"));
            ExitCode::FAILURE
        }
    }
}

/// Everything that must hold before a change lands.
fn test() -> Result<(), String> {
    etcd::ensure()?;
    run("formatting", &mut cargo(&["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run("lints", &mut cargo(&clippy))?;
    // The tests come last, so that their summary ends the output.
    if has_nextest() {
        run("documentation tests", &mut cargo(&["test", "--doc", "--workspace"]))?;
        run("tests", &mut cargo(&["nextest", "run", "--workspace", "--test-threads", &threads()]))?;
    } else {
        run("tests", &mut cargo(&["test", "--workspace"]))?;
    }
    say("\nall passed");
    Ok(())
}

/// How many tests run at once: one more than there are processors, since many of them wait most of the time.
fn threads() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors + 1).to_string()
}

fn has_nextest() -> bool {
    let mut probe = cargo(&["nextest", "--version"]);
    probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Whether a program can be found.
fn on_path(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// Whether we are root, as `id` says.
fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn say(line: &str) {
    // Nobody is left to tell if standard output is gone.
    writeln!(io::stdout(), "{line}").ok();
}
