//! What the command line accepts, and how it refuses the rest.

use clap::CommandFactory;

use super::*;

fn run(arguments: &str) -> Result<Run, String> {
    let words = ["concord-bench", "run"].into_iter().chain(arguments.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|failure| failure.to_string())?;
    let Command::Run(run) = cli.command else { return Err("not a run".to_owned()) };
    run.check().map_err(|failure| failure.to_string())?;
    Ok(*run)
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn without_arguments_everything_possible_is_measured() {
    let run = run("").expect("defaults are good");
    let names: Vec<_> = run.scenarios().into_iter().map(Scenario::name).collect();
    assert_eq!(
        names.join(" "),
        "discovery discovery-aggregated create get list list-rv0 list-paged update patch apply watch \
         watch-paced delete"
    );
    assert_eq!((run.objects, run.size, run.concurrency, run.watchers), (5000, 1024, 16, 500));
    assert_eq!(run.connections(), 16);
}

#[test]
fn scenarios_are_chosen() {
    let chosen = |arguments| run(arguments).expect("good").scenarios();
    assert_eq!(chosen("--only get,create"), [Scenario::Create, Scenario::Get]);
    assert_eq!(chosen("--only memory --pid 1"), [Scenario::Memory]);
    assert_eq!(chosen("--only startup --startup-command x"), [Scenario::Startup]);
    assert!(!chosen("--skip watch,get").contains(&Scenario::Watch));
    assert!(chosen("--pid 1").contains(&Scenario::Memory));
}

#[test]
fn values_are_read() {
    let run = run("--duration 1.5m --warmup 250ms --pid etcd=12 --pid 13 --http 1.1").expect("good");
    assert_eq!((run.duration, run.warmup), (Duration::from_secs(90), Duration::from_millis(250)));
    let etcd = Pid { name: Some("etcd".to_owned()), pid: 12 };
    assert_eq!(run.pid, [etcd, Pid { name: None, pid: 13 }]);
    assert_eq!(Protocol::from(run.http), Protocol::Http1);
}

#[test]
fn what_cannot_work_is_refused_with_advice() {
    let table = [
        ("--concurrency 0", "--concurrency must be 1 to 1024, not 0"),
        ("--objects 3", "--objects must be 16 to 1000000, not 3"),
        ("--size 2000000", "--size must be"),
        ("--connections 17", "--connections must be 1 to 16, not 17"),
        ("--watchers 0", "--watchers must be"),
        ("--watchers-per-connection 501", "--watchers-per-connection must be 1 to 500"),
        ("--watch-rate 0", "--watch-rate must be"),
        ("--watch-rate NaN", "--watch-rate must be"),
        ("--http 1.1 --connections 2", "use --http 2"),
        ("--http 3", "[possible values: 2, 1.1]"),
        ("--only startup", "needs --startup-command"),
        ("--startup-runs 3", "--startup-command"),
        ("--only memory", "needs --pid"),
        ("--only gett", "a similar value exists: 'get'"),
        ("--only get --skip get", "cannot be used with"),
        ("--duration 10", "such as 10s"),
        ("--duration s", "is not a number"),
        ("--duration=-1s", "give 0s to 1440m"),
        ("--duration 0s", "--duration must be longer than nothing"),
        ("--time-limit 0s", "--time-limit must be longer than nothing"),
        ("--pid x", "such as etcd=123"),
    ];
    for (arguments, expected) in table {
        let refusal = run(arguments).err().unwrap_or_else(|| panic!("{arguments} was accepted"));
        assert!(refusal.contains(expected), "{arguments}: {refusal} does not say {expected}");
    }
    let all: Vec<_> = Scenario::value_variants().iter().map(|scenario| scenario.name()).collect();
    let nothing = run(&format!("--skip {}", all.join(",")));
    assert!(nothing.err().is_some_and(|refusal| refusal.contains("nothing is left")));
}
