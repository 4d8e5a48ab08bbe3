use concord_apis::{RuntimeConfig, Settings, api_set};

use super::*;
use crate::{OPENID, components::Dialect, protobuf::decode};

/// Everything that the program knows.
fn publication() -> Publication {
    let runtime_config = RuntimeConfig::parse(&["api/all=true".to_owned()]).expect("valid");
    let set = Arc::new(api_set(&Settings { runtime_config, ..Settings::default() }));
    let context = Context {
        release: "1.36".to_owned(),
        annotations: Annotations::new(concord_builtins::annotations),
        definitions: Box::new(|_| None),
        services: OPENID.iter().collect(),
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
        let packed = |form| document.make(form, &publication).plain().expect("bytes");
        let json: Value = serde_json::from_slice(&packed(Form::Json)).expect("JSON");
        assert_eq!(difference(&key, &json, &decode(&packed(Form::Protobuf), dialect)), None);
    }
}
