use concord_apis::{RuntimeConfig, Settings, api_set};

use super::*;
use crate::{OPENID, components::Dialect, leaf::Form, protobuf::decode};

/// Everything that the program knows.
fn publication() -> Publication {
    let runtime_config = RuntimeConfig::parse(&["api/all=true".to_owned()]).expect("valid");
    let set = Arc::new(api_set(&Settings { runtime_config, ..Settings::default() }));
    let context = Context {
        release: "1.36".to_owned(),
        annotations: Annotations::new(concord_builtins::annotations),
        definitions: Box::new(|_| None),
        services: OPENID.iter().collect(),
        recent: Recent::default(),
        whole: Semaphore::new(1),
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
    let everything = ("v2".to_owned(), publication.everything.clone());
    let leaves = publication.leaves.iter().map(|(key, leaf)| (key.clone(), leaf.clone()));
    for (key, document) in leaves.chain([everything]) {
        let dialect = if key == "v2" { Dialect::V2 } else { Dialect::V3 };
        let packed = |form| document.make(form, &publication).0.plain().expect("bytes");
        let json: Value = serde_json::from_slice(&packed(Form::Json)).expect("JSON");
        assert_eq!(difference(&key, &json, &decode(&packed(Form::Protobuf), dialect)), None);
    }
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

#[test]
fn what_version_2_says_is_made_once_for_each_document() {
    let publication = publication();
    let first = publication.everything.make(Form::Json, &publication);
    // From here on there are only the parts.
    let context = Context {
        release: "1.36".to_owned(),
        annotations: Annotations::new(|| unreachable!("nothing is unpacked again")),
        definitions: Box::new(|_| None),
        services: OPENID.iter().collect(),
        recent: Recent::default(),
        whole: Semaphore::new(1),
    };
    context.annotations.share_common(&publication.context.annotations);
    let set = Arc::new(ApiSet::new(publication.set.groups().iter().cloned()));
    let next = Publication::new(set, Arc::default(), Arc::new(context), Some(&publication));
    assert_eq!(next.everything.make(Form::Json, &next).1, first.1);
}
