//! Steps of a task: announced, timed, and stopped at the first failure.

use std::{env, process::Command, time::Instant};

use crate::say;

/// The cargo that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs one step; its output goes where ours goes.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<(), String> {
    say(&format!("\n=== {name}: {}", show(command)));
    let begin = Instant::now();
    let status =
        command.status().map_err(|error| format!("{name}: cannot run {}: {error}", show(command)))?;
    let seconds = begin.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("=== {name} failed after {seconds:.1} s ({status})"));
    }
    say(&format!("=== {name} passed in {seconds:.1} s"));
    Ok(())
}

fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name).chain(arguments).collect::<Vec<_>>().join(" ")
}
