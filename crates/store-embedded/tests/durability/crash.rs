//! Killed at any moment.

use std::{env, thread, time::Duration};

use crate::{
    model::Model,
    process::Start,
    workload::{Run, mix},
};

#[test]
fn what_was_acknowledged_survives_sigkill() {
    let seed = crate::seed();
    let rounds =
        env::var("CONCORD_CRASH_ROUNDS").map_or(200, |rounds| rounds.parse().expect("a number of rounds"));
    eprintln!("seed {seed}, {rounds} rounds");
    let dir = tempfile::tempdir().expect("a directory");
    let store = dir.path().join("store.db");
    let mut model = Model::new(seed);
    let mut acknowledged = 0;
    for round in 0..rounds {
        let run = Run { seed, round };
        let dice = mix(&[seed, round, 2]);
        let mut child = Start::new(&store, run).spawn();
        // One in four is killed while it starts, the others at work.
        if dice.is_multiple_of(4) || child.wait_for(|line| line.starts_with("ack")) {
            thread::sleep(Duration::from_micros((dice >> 8) % 60_000));
        }
        let lines = child.kill();
        let context = || format!("round {round} of CONCORD_SEED={seed}");
        let absorbed = model.absorb(run, lines.iter().map(String::as_str));
        absorbed.unwrap_or_else(|wrong| panic!("{}: {wrong}", context()));
        // Some children find what the last one left behind, not what a clean close leaves.
        if !(dice >> 40).is_multiple_of(4) || round + 1 == rounds {
            acknowledged += model.acknowledged();
            model.verify(&store).unwrap_or_else(|wrong| panic!("{}: {wrong}", context()));
        }
    }
    eprintln!("{acknowledged} acknowledged writes verified");
    assert!(acknowledged as u64 > rounds, "the children hardly wrote anything");
}
