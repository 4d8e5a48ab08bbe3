use std::sync::atomic::{AtomicUsize, Ordering};

use concord_apis::{RuntimeConfig, Settings, api_set};

use super::*;
use crate::{OPENID, components::Dialect, everything::tests::sent, leaf::Form, protobuf::decode};

/// Everything that the program knows.
fn publication() -> Publication {
    publication_with(concord_builtins::annotations)
}

fn publication_with(annotations: fn() -> serde_json::Map<String, Value>) -> Publication {
    let runtime_config = RuntimeConfig::parse(&["api/all=true".to_owned()]).expect("valid");
    let set = Arc::new(api_set(&Settings { runtime_config, ..Settings::default() }));
    let context = Context {
        release: "1.36".to_owned(),
        annotations: Annotations::new(annotations),
        definitions: Box::new(|_| None),
        services: OPENID.iter().collect(),
        recent: Recent::default(),
        whole: Arc::new(Semaphore::new(1)),
        kept: Kept::default(),
    };
    Publication::new(set, Arc::default(), Arc::new(context), None)
}

/// The first place where two documents differ.
fn difference(at: &str, one: &Value, other: &Value) -> Option<String> {
    if one == other {
        return None;
    }
    if let (Value::Object(one), Value::Object(other)) = (one, other) {
        let mut names = one.keys().chain(other.keys());
        let inner = |name: &String| {
            let of =
                |members: &serde_json::Map<String, Value>| members.get(name).cloned().unwrap_or_default();
            difference(&format!("{at}/{name}"), &of(one), &of(other))
        };
        return names.find_map(inner);
    }
    Some(format!("{at}: {one} is not {other}"))
}

#[test]
fn messages_have_what_the_documents_have() {
    let publication = publication();
    let _texts = publication.context.annotations.texts();
    let compare = |key: &str, dialect: Dialect, made: &dyn Fn(Form) -> Bytes| {
        let json: Value = serde_json::from_slice(&made(Form::Json)).expect("JSON");
        assert_eq!(difference(key, &json, &decode(&made(Form::Protobuf), dialect)), None);
    };
    for (key, leaf) in &publication.leaves {
        compare(key, Dialect::V3, &|form| leaf.make(form, &publication).0.plain().expect("bytes"));
    }
    let everything = Everything::new(&publication);
    compare("v2", Dialect::V2, &|form| sent(&everything, form, false).into());
}

#[test]
fn names_of_built_in_types_and_of_their_lists_are_taken() {
    let publication = publication();
    let sources = publication.sources(true);
    for name in ["io.k8s.api.apps.v1.Deployment", "io.k8s.api.apps.v1.DeploymentList"] {
        assert!(sources.is_taken(name), "{name}");
    }
    assert!(!sources.is_taken("com.example.lab.v1.WidgetList"));
}

static UNPACKED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn what_version_2_says_of_what_is_built_in_is_made_once() {
    let first = publication_with(|| {
        UNPACKED.fetch_add(1, Ordering::Relaxed);
        concord_builtins::annotations()
    });
    let hash = Everything::new(&first).hash().clone();
    let unpacked = UNPACKED.load(Ordering::Relaxed);
    let set = Arc::new(ApiSet::new(first.set.groups().iter().cloned()));
    let next = Publication::new(set, Arc::default(), first.context.clone(), Some(&first));
    assert_eq!(*Everything::new(&next).hash(), hash);
    assert_eq!(UNPACKED.load(Ordering::Relaxed), unpacked, "nothing is unpacked again");
}
