//! The protocol keeps its promises in every interleaving, and the checker finds what breaks them in upstream's.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use concord_fleetmodel::{Budget, Fleet, Invariant, Race, Resource, Scenario};
use stateright::{Checker as _, HasDiscoveries, Model as _};

/// `CONCORD_MODEL_SCALE=1` and more allow that much more to happen: minutes and hours instead of seconds.
fn scale() -> u8 {
    env::var("CONCORD_MODEL_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(0)
}

/// Properties, and what led to where they do not hold.
type Found = BTreeMap<&'static str, String>;

/// What happens sometimes in every model that shows anything.
const WRITTEN: &str = "an object is written";

/// Which properties do not hold, and how many states were seen: all of them, or until `enough` was found.
fn explore(scenario: Scenario, enough: &'static str) -> (Found, usize) {
    let until = match enough {
        "" => HasDiscoveries::AnyFailures,
        property => HasDiscoveries::AllOf(BTreeSet::from([property])),
    };
    let checker = Fleet { scenario }.checker().threads(2).finish_when(until).spawn_bfs().join();
    let discoveries = checker.discoveries().into_iter();
    let found: Found = discoveries.map(|(name, path)| (name, format!("{:?}", path.into_actions()))).collect();
    (found, checker.unique_state_count())
}

fn holds(name: &str, scenario: Scenario) {
    let writes = scenario.budget.writes > 0;
    let (mut found, states) = explore(scenario, "");
    let written = found.remove(WRITTEN).is_some();
    assert!(found.is_empty(), "{name}: {found:#?} in {states} states");
    assert_eq!(written, writes, "{name}: a model in which nothing happens shows nothing");
}

fn budget() -> Budget {
    Budget::default()
}

#[test]
fn an_upgrade_with_crashes_and_lost_leases_keeps_every_promise() {
    holds(
        "upgrade",
        Scenario {
            budget: Budget {
                starts: 3 + scale(),
                crashes: 1,
                writes: 1 + scale(),
                lease_losses: 1,
                ..budget()
            },
            ..Scenario::default()
        },
    );
}

#[test]
fn a_rolling_restart_with_orderly_stops_keeps_every_promise() {
    holds(
        "stops",
        Scenario {
            budget: Budget { starts: 3 + scale(), stops: 2, writes: 1 + scale(), ..budget() },
            ..Scenario::default()
        },
    );
}

#[test]
fn flips_of_a_custom_resource_keep_every_promise() {
    holds(
        "flips",
        Scenario {
            resources: vec![Resource::Custom],
            budget: Budget {
                starts: 2,
                crashes: scale(),
                writes: 1 + scale(),
                flips: 2 + scale(),
                ..budget()
            },
            flying: 3,
            ..Scenario::default()
        },
    );
}

#[test]
fn three_servers_keep_every_promise() {
    holds(
        "three",
        Scenario {
            servers: 3,
            budget: Budget { starts: 3 + scale(), crashes: 1, writes: 1, ..budget() },
            ..Scenario::default()
        },
    );
}

#[test]
fn two_processes_with_one_identity_keep_every_promise() {
    holds(
        "duplicates",
        Scenario {
            servers: 1,
            duplicates: true,
            budget: Budget {
                starts: 3 + scale(),
                crashes: 1,
                writes: 1 + scale(),
                lease_losses: 1,
                ..budget()
            },
            ..Scenario::default()
        },
    );
}

#[test]
fn a_resource_that_is_dropped_leaves_nothing_behind() {
    holds(
        "dropped",
        Scenario {
            resources: vec![Resource::Dropped],
            budget: Budget { starts: 3 + scale(), crashes: 1, writes: 1, ..budget() },
            ..Scenario::default()
        },
    );
}

#[test]
fn entries_that_are_taken_away_are_put_back_before_anything_is_written() {
    holds(
        "strips",
        Scenario {
            resources: vec![Resource::BuiltIn, Resource::Custom],
            servers: 1,
            budget: Budget {
                starts: 2,
                crashes: 1,
                writes: 1 + scale(),
                strips: 1 + scale(),
                flips: 1,
                ..budget()
            },
            ..Scenario::default()
        },
    );
}

#[test]
fn two_servers_that_write_two_resources_while_one_flips_keep_every_promise() {
    holds(
        "together",
        Scenario {
            resources: vec![Resource::BuiltIn, Resource::Custom],
            budget: Budget {
                starts: 2 + scale(),
                crashes: scale(),
                writes: 1 + scale(),
                flips: 1 + scale(),
                ..budget()
            },
            ..Scenario::default()
        },
    );
}

#[test]
fn a_migration_succeeds_only_if_nothing_is_left_behind() {
    holds(
        "migration",
        Scenario {
            resources: vec![Resource::Custom],
            budget: Budget { starts: 2, writes: 1, flips: 1 + scale(), migrations: 1, ..budget() },
            ..Scenario::default()
        },
    );
}

#[test]
fn a_migration_that_is_taken_over_in_an_upgrade_leaves_nothing_behind() {
    holds(
        "takeover",
        Scenario {
            budget: Budget { starts: 2 + scale(), crashes: 1, writes: 1, migrations: 1, ..budget() },
            ..Scenario::default()
        },
    );
}

#[test]
fn a_server_that_says_nothing_is_no_part_of_any_agreement() {
    holds(
        "silent",
        Scenario {
            silent_server: true,
            budget: Budget { starts: 2 + scale(), writes: 1, migrations: 1, ..budget() },
            ..Scenario::default()
        },
    );
}

#[test]
fn what_cannot_be_registered_keeps_nobody_waiting() {
    holds(
        "stuck",
        Scenario {
            resources: vec![Resource::BuiltIn, Resource::Custom],
            budget: Budget { starts: 2, ..budget() },
            ..Scenario::default()
        },
    );
}

#[test]
fn a_machine_with_a_long_name_has_an_identity() {
    holds(
        "hostname",
        Scenario {
            hostname: "h".repeat(64),
            budget: Budget { starts: 1, writes: 1, ..budget() },
            ..Scenario::default()
        },
    );
}

/// Every server, and whoever collects, decides on what it has seen, which is older than what is.
fn late(budget: Budget) -> Scenario {
    Scenario { late_views: true, budget, ..Scenario::default() }
}

#[test]
fn gates_and_fences_of_servers_that_see_late_keep_every_promise() {
    holds("late gate", late(Budget { starts: 2 + scale(), writes: 1, lease_losses: 1, ..budget() }));
}

#[test]
fn a_collector_that_sees_late_keeps_every_promise() {
    let (starts, writes) = (2 + scale(), scale());
    holds("late collector", late(Budget { starts, crashes: 1, lease_losses: 1, writes, ..budget() }));
}

#[test]
fn flips_that_servers_see_late_keep_every_promise() {
    let scenario = late(Budget { starts: 2 + scale(), writes: 1, flips: 2, ..budget() });
    holds("late flips", Scenario { resources: vec![Resource::Custom], ..scenario });
}

#[test]
fn a_migration_through_servers_that_see_late_leaves_nothing_behind() {
    let scenario = late(Budget { starts: 2 + scale(), writes: 1, flips: 1, migrations: 1, ..budget() });
    holds("late migration", Scenario { resources: vec![Resource::Custom], flying: 1, ..scenario });
}

/// A race of upstream's, the scenario in which it happens, and what it breaks there.
fn races() -> Vec<(&'static str, Race, Invariant, Scenario)> {
    use Invariant as I;
    use Resource::{BuiltIn, Custom, Dropped};
    let with = |budget: Budget| Scenario { budget, ..Scenario::default() };
    let lost = Budget { starts: 2, lease_losses: 1, ..budget() };
    let writes = Budget { starts: 2, writes: 1, lease_losses: 1, ..budget() };
    let flips =
        Scenario { resources: vec![Custom], ..with(Budget { starts: 1, writes: 1, flips: 2, ..budget() }) };
    vec![
        ("R1", Race::LeaseBeforeObject, I::NoLiveStrip, with(lost)),
        (
            "R2a",
            Race::PredecessorsLease,
            I::MembershipBeforeEntry,
            with(Budget { starts: 2, crashes: 1, ..budget() }),
        ),
        ("R2b", Race::NoFence, I::FenceOnLeaseLoss, with(writes)),
        ("R2c", Race::RevisionAlone, I::NoLiveStrip, with(lost)),
        ("R3", Race::ErrorIsAbsent, I::NoLiveStrip, with(Budget { starts: 2, ..budget() })),
        ("R4", Race::UnconditionalDelete, I::NoLostRegistration, with(lost)),
        (
            "R5",
            Race::CreateThenFill,
            I::Settled,
            Scenario { resources: vec![Dropped], ..with(Budget { starts: 2, crashes: 1, ..budget() }) },
        ),
        (
            "R6",
            Race::LeaseBeforeDrain,
            I::ShutdownOrder,
            with(Budget { starts: 1, stops: 1, writes: 1, ..budget() }),
        ),
        (
            "R7",
            Race::SharedIdentity,
            I::FenceOnLeaseLoss,
            Scenario { servers: 1, duplicates: true, ..with(Budget { starts: 2, writes: 1, ..budget() }) },
        ),
        ("R8", Race::UnstableOrder, I::Idempotence, with(Budget { starts: 1, ..budget() })),
        (
            "R9",
            Race::LatchedGate,
            I::RegisterBeforeWrite,
            with(Budget { starts: 1, writes: 1, strips: 1, ..budget() }),
        ),
        ("R10", Race::NoRetry, I::Settled, with(Budget { starts: 2, ..budget() })),
        (
            "R11",
            Race::Sequential,
            I::Settled,
            Scenario { resources: vec![BuiltIn, Custom], ..with(Budget { starts: 1, ..budget() }) },
        ),
        (
            "R12",
            Race::RawHostname,
            I::Settled,
            Scenario { hostname: "h".repeat(64), ..with(Budget { starts: 1, ..budget() }) },
        ),
        (
            "R13",
            Race::NoWithdrawal,
            I::Settled,
            Scenario { resources: vec![Dropped], ..with(Budget { starts: 2, crashes: 1, ..budget() }) },
        ),
        (
            "R14",
            Race::ExemptWrites,
            I::RegisterBeforeWrite,
            with(Budget { starts: 1, writes: 1, ..budget() }),
        ),
        ("R15", Race::DrainCutShort, I::DrainBeforeFlip, flips.clone()),
        ("R16", Race::OutOfOrder, I::LatestWins, flips.clone()),
        ("R17", Race::InternalWriter, I::RegisterBeforeWrite, flips.clone()),
        (
            "R18",
            Race::EntriesOnly,
            I::AgreementSoundness,
            Scenario { silent_server: true, ..with(Budget { starts: 2, writes: 1, ..budget() }) },
        ),
        (
            "values",
            Race::ValuesCompared,
            I::CleanMigration,
            Scenario {
                resources: vec![Custom],
                ..with(Budget { starts: 1, writes: 2, flips: 2, migrations: 1, ..budget() })
            },
        ),
        (
            "stale",
            Race::StaleServers,
            I::CleanMigration,
            Scenario {
                resources: vec![Custom],
                ..with(Budget { starts: 1, writes: 2, flips: 1, migrations: 1, ..budget() })
            },
        ),
    ]
}

#[test]
fn each_race_of_upstream_is_found() {
    for (name, race, invariant, scenario) in races() {
        let (found, states) = explore(Scenario { race: Some(race), ..scenario }, invariant.name());
        assert!(found.contains_key(invariant.name()), "{name}: {found:?} in {states} states");
    }
}

#[test]
fn each_race_of_upstream_is_found_where_servers_see_late() {
    for (name, race, invariant, scenario) in races() {
        let scenario = Scenario { race: Some(race), late_views: true, ..scenario };
        let (found, states) = explore(scenario, invariant.name());
        assert!(found.contains_key(invariant.name()), "{name}: {found:?} in {states} states");
    }
}

#[test]
fn without_the_race_the_same_scenario_is_safe() {
    for (name, _, _, scenario) in races() {
        let (mut found, states) = explore(scenario, "");
        found.remove(WRITTEN);
        assert!(found.is_empty(), "{name}: {found:?} in {states} states");
    }
}
