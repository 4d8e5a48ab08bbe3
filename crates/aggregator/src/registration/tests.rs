use super::*;

fn there(version: &str, managed: Managed, priority: Priority) -> ApiService {
    let version = GroupVersion::new("a.io", version);
    ApiService {
        name: name(&version),
        uid: "u".to_owned(),
        version,
        priority,
        backend: None,
        managed,
        is_available: true,
        is_told_local: true,
    }
}

fn wanted(managed: Managed) -> BTreeMap<String, (GroupVersion, Wanted)> {
    let version = GroupVersion::new("a.io", "v1");
    BTreeMap::from([(name(&version), (version, Wanted { priority: CUSTOM, managed }))])
}

/// What is done with an APIService that is or is not there, if it is wanted in none, in the first or in the second way.
fn rows(known: Option<(Managed, Priority)>, at_start: bool, started: bool) -> [&'static str; 3] {
    let mut progress = Progress::default();
    if let Some((managed, priority)) = known {
        progress.known.insert("v1.a.io".to_owned(), there("v1", managed, priority));
    }
    if at_start {
        progress.at_start.insert("v1.a.io".to_owned());
    }
    if started {
        progress.started.insert("v1.a.io".to_owned());
    }
    [BTreeMap::new(), wanted(Managed::OnStart), wanted(Managed::Always)].map(|wanted| {
        match progress.steps(&wanted, true, false).as_slice() {
            [] => "-",
            [Step::Create(..)] => "create",
            [Step::Update(..)] => "update",
            [Step::Delete { .. }] => "delete",
            more => panic!("{more:?}"),
        }
    })
}

#[test]
fn the_rules_are_upstreams() {
    let other = Priority { group: 1, version: 1 };
    assert_eq!(rows(None, false, false), ["-", "create", "create"]);
    assert_eq!(rows(None, false, true), ["-", "-", "create"]);
    assert_eq!(rows(Some((Managed::ByHand, other)), true, false), ["-", "-", "-"]);
    assert_eq!(rows(Some((Managed::OnStart, other)), false, false), ["-", "-", "-"]);
    assert_eq!(rows(Some((Managed::OnStart, other)), true, false), ["delete", "update", "update"]);
    assert_eq!(rows(Some((Managed::OnStart, other)), true, true), ["-", "-", "-"]);
    assert_eq!(rows(Some((Managed::Always, other)), true, false), ["delete", "update", "update"]);
    assert_eq!(rows(Some((Managed::Always, other)), true, true), ["delete", "-", "update"]);
}

#[test]
fn what_is_right_is_not_written() {
    for managed in [Managed::OnStart, Managed::Always] {
        assert_eq!(rows(Some((managed, CUSTOM)), true, false)[1..], ["-", "-"]);
    }
}

#[test]
fn nothing_is_deleted_that_may_be_needed() {
    let mut progress = Progress::default();
    progress.known.insert("v1.a.io".to_owned(), there("v1", Managed::Always, CUSTOM));
    assert_eq!(progress.steps(&BTreeMap::new(), false, false), []);
    progress.known.insert("v1.a.io".to_owned(), there("v1", Managed::OnStart, CUSTOM));
    progress.at_start.insert("v1.a.io".to_owned());
    assert_eq!(progress.steps(&BTreeMap::new(), true, true), []);
    assert_eq!(progress.steps(&BTreeMap::new(), true, false).len(), 1);
}

#[test]
fn what_became_local_is_told_so() {
    let mut progress = Progress::default();
    let service = ApiService { is_told_local: false, ..there("v1", Managed::ByHand, CUSTOM) };
    progress.known.insert("v1.a.io".to_owned(), service);
    assert_eq!(progress.steps(&BTreeMap::new(), true, false), [Step::Tell("v1.a.io".to_owned())]);
}
