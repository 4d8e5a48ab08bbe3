//! What the built-in APIs take of memory and of the time of a start.

use std::{
    fs,
    time::{Duration, Instant},
};

use concord_apis::{Release, RuntimeConfig, Settings, api_set};
use concord_registry::{Context, Resources as _};
use serde_json::json;

/// The memory of this process that no file backs, in KiB; `None` where the system does not say.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

/// A process of its own: memory that another test had before would not be seen to be taken.
#[test]
#[expect(clippy::print_stdout, reason = "what was measured, and that nothing was")]
fn the_catalog_and_all_schemas_take_less_than_five_mebibytes() {
    let Some(before) = resident() else {
        println!("skipped: the system does not say how much memory is in use");
        return;
    };
    let everything = RuntimeConfig::parse(&["api/all=true"]).expect("good");
    let begin = Instant::now();
    let set = api_set(&Settings { runtime_config: everything, ..Settings::default() });
    let took = begin.elapsed();
    let served = resident().expect("told before");
    // The tables that are read when they are first needed.
    let version = concord_meta::GroupVersion::new("apps", "v1");
    let deployments = set.find(&version, "deployments").expect("there are deployments");
    let strategy = &deployments.storage().expect("they are stored").strategy;
    let mut deployment =
        json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [{}]}}}});
    let deployment = deployment.as_object_mut().expect("an object");
    let context = Context::of_the_server(concord_merge::apply::Time { unix: 0 });
    strategy.default("apps/v1", deployment);
    strategy.prepare_for_create(&context, deployment);
    assert!(!strategy.validate_create(&context, deployment).is_empty());
    let used = resident().expect("told before");
    assert!(concord_builtins::protobuf("apps", "v1", "Deployment").is_some());
    let whole = resident().expect("told before");
    println!(
        "{} of {}: served in {took:?} with {} KiB, first object {} KiB, protobuf {} KiB",
        set.groups().len(),
        Release::LATEST,
        served - before,
        used - served,
        whole - used
    );
    assert!(whole - before < 5 * 1024, "{} KiB", whole - before);
    // What is wanted of a release build; another takes longer.
    assert!(cfg!(debug_assertions) || took < Duration::from_millis(5), "{took:?}");
}
