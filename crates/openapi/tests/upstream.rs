//! The documents about the built-in APIs, compared whole with those of upstream.
//!
//! What may differ is what [`exemptions::ALL`] takes out of both before they are compared: each is a row of
//! docs/compatibility.md, and is needed. Whatever else differs fails a test.
//!
//! Upstream's published files have no enums: those that our documents have are counted, and known by their hash, since they
//! were compared with a kube-apiserver 1.36.4 last. `CONCORD_LIVE_DOCUMENTS` names a directory with the documents of a running
//! kube-apiserver, which has them, in files that are called as the published ones:
//!
//! ```sh
//! kube-apiserver --runtime-config=api/all=true --feature-gates=AllAlpha=true,AllBeta=true ...
//! kubectl get --raw /openapi/v3/apis/apps/v1 > "$CONCORD_LIVE_DOCUMENTS/apis__apps__v1_openapi.json"   # and so on
//! ```

mod support;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use support::{
    everything,
    exemptions::{self, Exemption},
    get, keys, specifications,
};

/// A schema in one form; a reference stands alone, however it was wrapped.
fn schema(value: &mut Value, has_enums: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| schema(item, has_enums)),
        Value::Object(members) => {
            if let Some([reference]) = members.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
                let reference = reference["$ref"].clone();
                members.remove("allOf");
                members.insert("$ref".to_owned(), reference);
            }
            if !has_enums && members.get("enum").is_some_and(Value::is_array) {
                members.remove("enum");
            }
            members.values_mut().for_each(|member| schema(member, has_enums));
        }
        _ => {}
    }
}

/// Where two values differ, for people.
fn differences(at: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for name in names {
                let get = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or_default();
                differences(&format!("{at} {name}"), &get(ours), &get(theirs), found);
            }
        }
        _ if ours != theirs => found.push(format!("{at}: {ours} instead of {theirs}")),
        _ => {}
    }
}

/// Two documents of the same.
struct Pair {
    key: String,
    ours: Value,
    theirs: Value,
}

impl Pair {
    /// The differences that are left when these are taken out.
    fn differences<'a>(&self, exemptions: impl Iterator<Item = &'a Exemption>) -> Vec<String> {
        let (mut ours, mut theirs) = (self.ours.clone(), self.theirs.clone());
        for exemption in exemptions {
            (exemption.apply)(&mut ours);
            (exemption.apply)(&mut theirs);
        }
        let mut found = Vec::new();
        differences(&self.key, &ours, &theirs, &mut found);
        found
    }
}

/// Our documents with upstream's.
async fn pairs(directory: &Path, has_enums: bool) -> Vec<Pair> {
    let openapi = everything();
    let mut pairs = Vec::new();
    for key in keys(&openapi).await {
        let name = key.replace('/', "__");
        let Ok(text) = fs::read_to_string(directory.join(format!("{name}_openapi.json"))) else {
            // A file cannot have a name that begins with a dot there.
            assert!(key.starts_with(".well-known"), "upstream has no {key}");
            continue;
        };
        let mut theirs: Value = serde_json::from_str(&text).expect("JSON");
        let mut ours = get(&openapi, &format!("/openapi/v3/{key}")).await;
        for document in [&mut ours, &mut theirs] {
            // The files are said to be of no version.
            document["info"]["version"].take();
            schema(document, has_enums);
        }
        pairs.push(Pair { key, ours, theirs });
    }
    assert!(pairs.len() > 50, "only {} documents", pairs.len());
    pairs
}

/// The same of version 2.
async fn swagger(directory: &Path) -> Pair {
    let text = fs::read_to_string(directory.join("swagger.json")).expect("upstream's document");
    let mut theirs = serde_json::from_str(&text).expect("JSON");
    let mut ours = get(&everything(), "/openapi/v2").await;
    for document in [&mut ours, &mut theirs] {
        document["info"]["version"].take();
        schema(document, false);
        inline(document);
    }
    Pair { key: "v2".to_owned(), ours, theirs }
}

/// Puts parameters where they are referred to: their names are made from what they say, which are our own words.
fn inline(document: &mut Value) {
    let shared = document["parameters"].take();
    let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let items = paths.flat_map(|item| item.as_object_mut().into_iter().flat_map(|item| item.values_mut()));
    let lists = items.flat_map(|of| match of {
        Value::Array(parameters) => parameters.iter_mut(),
        other => other
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
            .map_or([].iter_mut(), |all| all.iter_mut()),
    });
    for parameter in lists {
        let name = parameter["$ref"].as_str().and_then(|name| name.strip_prefix("#/parameters/"));
        if let Some(known) = name.and_then(|name| shared.get(name)) {
            *parameter = known.clone();
        }
    }
}

fn report(found: &[String]) -> String {
    format!("{} differences:\n{}", found.len(), found.join("\n"))
}

#[tokio::test]
async fn documents_have_the_content_of_upstreams() {
    let Some(directory) = specifications() else { return };
    let mut pairs = pairs(&directory.join("v3"), false).await;
    pairs.push(swagger(&directory).await);
    let found: Vec<String> = pairs.iter().flat_map(|pair| pair.differences(exemptions::ALL.iter())).collect();
    assert!(found.is_empty(), "{}", report(&found));
    for unneeded in exemptions::ALL {
        let others = || exemptions::ALL.iter().filter(|other| other.told != unneeded.told);
        let is_needed = pairs.iter().any(|pair| !pair.differences(others()).is_empty());
        assert!(
            is_needed,
            "nothing differs any more, although docs/compatibility.md says: {}",
            unneeded.told
        );
    }
}

#[test]
fn what_may_differ_is_documented() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let text = fs::read_to_string(path).expect("docs/compatibility.md");
    for exemption in exemptions::ALL {
        let row = text.lines().find(|line| line.starts_with(&format!("| {} | ", exemption.told)));
        assert!(row.is_some(), "docs/compatibility.md does not say: {}", exemption.told);
    }
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
async fn enums_are_those_of_a_running_server() {
    let Some(directory) = env::var_os("CONCORD_LIVE_DOCUMENTS").map(PathBuf::from) else {
        println!("skipped: CONCORD_LIVE_DOCUMENTS is not set");
        return;
    };
    let pairs = pairs(&directory, true).await;
    let found: Vec<String> = pairs.iter().flat_map(|pair| pair.differences(exemptions::ALL.iter())).collect();
    assert!(found.is_empty(), "{}", report(&found));
}

/// How many fields have an enum, and the SHA-256 of all of them, when they were those of a running server.
const ENUMS: (usize, &str) = (124, "da6102e145121fc4edd0693290f8ae0781202bd90f8fbcdae839e3962a17d964");

/// The places of enums in a schema, with the values.
fn enums(at: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(values) = members.get("enum").filter(|values| values.is_array()) {
                found.insert(format!("{at}: {values}"));
            }
            members.iter().for_each(|(name, member)| enums(&format!("{at} {name}"), member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| enums(at, item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn enums_are_those_that_were_compared() {
    let (openapi, mut found) = (everything(), BTreeSet::new());
    for key in keys(&openapi).await {
        let document = get(&openapi, &format!("/openapi/v3/{key}")).await;
        enums("", &document["components"]["schemas"], &mut found);
    }
    let lines: Vec<String> = found.into_iter().collect();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, lines.join("\n").as_bytes());
    let hash: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (lines.len(), &*hash),
        ENUMS,
        "compare them with CONCORD_LIVE_DOCUMENTS before this is changed"
    );
}
