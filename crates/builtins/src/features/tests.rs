use super::{read::gates, *};

fn release(text: &str) -> Release {
    text.parse().expect("a release")
}

fn parse(emulated: &str, values: &[&str]) -> Result<FeatureGates, String> {
    let min = release(emulated).before().max(Release::OLDEST);
    FeatureGates::parse(release(emulated), min, values).map_err(|error| error.to_string())
}

#[test]
fn the_table_is_complete_and_in_order() {
    let names: Vec<&str> = gates().map(|gate| gate.name).collect();
    assert!(names.is_sorted() && names.len() > 200, "{names:?}");
    for gate in gates() {
        assert_eq!(gate.unread(), [""; 0], "{}", gate.name);
        assert!(gate.states().map(|(since, _)| since).is_sorted(), "{}", gate.name);
        for needed in gate.needs() {
            assert!(names.contains(&needed), "{} needs {needed}", gate.name);
        }
    }
}

#[test]
fn every_release_can_be_had_as_it_is() {
    for release in Release::all() {
        let before = release.before().max(Release::OLDEST);
        let parsed = FeatureGates::parse(release, before, &[""; 0]);
        assert_eq!(parsed, Ok(FeatureGates::of(release)));
    }
}

#[test]
fn defaults_are_those_of_the_release() {
    for (gate, on) in [
        ("EnvFiles", [false, false, true, true]),
        ("ImageVolume", [false, false, true, true]),
        ("ContainerStopSignals", [false; 4]),
        ("APIServerIdentity", [true; 4]),
        // Ours are on, whatever upstream's are.
        ("StorageVersionAPI", [true; 4]),
    ] {
        let told: Vec<bool> = Release::all().map(|release| FeatureGates::of(release).enabled(gate)).collect();
        assert_eq!(told, on, "{gate}");
    }
}

#[test]
fn flags_count_more_than_stages_and_these_more_than_defaults() {
    let gates = parse("1.36", &["AllAlpha=true,ContainerStopSignals=false", "EnvFiles=F"]).expect("good");
    assert!(gates.enabled("GenericWorkload") && gates.enabled("AllowUnsafeMalformedObjectDeletion"));
    assert!(!gates.enabled("ContainerStopSignals") && !gates.enabled("EnvFiles"));
    let gates = parse("1.36", &["kube:AllBeta=true", "kube: ContainerStopSignals = 1 "]).expect("good");
    assert!(gates.enabled("ContainerStopSignals") && gates.enabled("ClusterTrustBundle"));
    assert!(!gates.enabled("GenericWorkload"));
}

#[test]
fn what_makes_no_sense_is_refused_in_upstreams_words() {
    for (emulated, values, complaint) in [
        ("1.36", "Foo=true", "unrecognized feature gate: Foo"),
        ("1.36", "Foo", "missing bool value for Foo"),
        (
            "1.36",
            "EnvFiles=maybe",
            r#"invalid value of EnvFiles=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax"#,
        ),
        ("1.36", "bar:EnvFiles=true", "component not registered: bar"),
        (
            "1.36",
            "kube:EnvFiles=true,EnvFiles=false",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
        (
            "1.36",
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            "1.33",
            "GenericWorkload=true",
            "cannot set feature gate GenericWorkload to true, feature is PreAlpha at emulated version 1.33, \
             min compatibility version 1.33",
        ),
        (
            "1.36",
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "1.36",
            "APIServerIdentity=false",
            "[StorageVersionAPI is enabled, but depends on features that are disabled: [APIServerIdentity], \
             UnknownVersionInteroperabilityProxy is enabled, but depends on features that are disabled: \
             [APIServerIdentity]]",
        ),
    ] {
        assert_eq!(parse(emulated, &[values]), Err(complaint.to_owned()));
    }
}

#[test]
fn gates_that_nothing_depends_on_are_told() {
    let values = ["WatchList=false,PodDeletionCost=false"];
    let gates = parse("1.36", &values).expect("good");
    let release = release("1.36");
    let told = gates.without_effect(release, &values);
    assert_eq!(told, ["WatchList"]);
    let as_it_is = parse("1.36", &["WatchList=true"]).expect("good");
    assert_eq!(as_it_is.without_effect(release, &["WatchList=true"]), [""; 0]);
}
