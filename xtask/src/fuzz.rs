//! Runs the fuzzer of `fuzz/`.

use std::{fs, path::Path, process::Command};

use crate::step::{self, cargo};

/// How long, unless told otherwise.
const SECONDS: &str = "600";

/// What tells the fuzzer which code an input reaches. These are options of LLVM that stable compilers have, too.
const INSTRUMENTED: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=16",
];

/// Goes on for so many seconds; what it learned stays in `fuzz/corpus`, what breaks the server in `fuzz/artifacts`.
pub(crate) fn run(seconds: Option<&str>) -> Result<(), String> {
    let seconds = seconds.unwrap_or(SECONDS);
    seconds.parse::<u32>().map_err(|_| format!("{seconds:?} is no number of seconds"))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace has no directory")?;
    let directory = root.join("fuzz");
    for made in ["corpus", "artifacts"] {
        fs::create_dir_all(directory.join(made))
            .map_err(|error| format!("cannot make fuzz/{made}: {error}"))?;
    }
    // With a target of its own, only what is fuzzed is instrumented, and not what is run while it is built.
    let mut fuzz = cargo(&["run", "--release", "--locked", "--target", &host()?, "--bin", "requests", "--"]);
    fuzz.args([
        "corpus",
        "seeds",
        "-dict=words.dict",
        "-artifact_prefix=artifacts/",
        "-max_len=4096",
        "-timeout=10",
    ])
    .args([&format!("-max_total_time={seconds}"), "-rss_limit_mb=4096", "-print_final_stats=1"])
    .env("RUSTFLAGS", INSTRUMENTED.join(" "))
    .current_dir(directory);
    step::run("fuzzing", &mut fuzz)
}

/// What this compiler builds for by default.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say what it builds for".to_owned())
}
