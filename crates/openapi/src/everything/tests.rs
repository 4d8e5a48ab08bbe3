use std::{collections::BTreeMap, io::Read as _};

use bytes::Bytes;
use concord_apis::{Settings, api_set};
use concord_endpoints::{ApiGroup, ApiSet, ApiVersion, Endpoint, Origin};
use concord_meta::{GroupResource, GroupVersion, GroupVersionKind};
use concord_registry::{
    Backing, Form as ObjectForm, Renaming, Resource, ResourceNames, Scaling, Storage, Strategy as Rules,
    Subresource, SubresourceKind, Verb,
};
use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;
use proptest::{prelude::*, sample::select, test_runner::TestRunner};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::*;
use crate::{
    OPENID, SwaggerPart, annotations::Annotations, components::Dialect, extensions::ExtensionDocuments,
    packed::Recent, protobuf, publication::Context,
};

/// Groups whose types stand before, behind, between and among those of others.
const GROUPS: [&str; 6] =
    ["lab.example.com", "v1.lab.example.com", "apps.api.k8s.io", "autoscaling.api.k8s.io", "a.io", "zoo"];
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// Some of which are taken.
const KINDS: [&str; 5] = ["Deployment", "ReplicaSetter", "Scale", "apple", "zebra"];
/// Types of other servers: some are those of this one, some stand among them.
const TYPES: [&str; 7] = [
    "Apple",
    "com.example.lab.v1.apple",
    "com.example.lab.v1.b",
    "com.example.lab.v1.v1.zebra_v2",
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "zebra",
];

/// Groups of other servers.
const OTHERS: [&str; 3] = ["lab.example.com", "b.io", "zz.io"];

/// A definition: group, version, kind, whether its objects have scales, and what it says.
type Defined = (&'static str, &'static str, &'static str, bool, u8);
/// What another server says: its group, the types it has, and which of two things it means by them.
type Other = (&'static str, Vec<&'static str>, bool);

struct Plain;

impl Rules for Plain {}

fn resource((group, version, kind, has_scale, state): Defined) -> Resource {
    let version = GroupVersion::new(group, version);
    let plural = format!("{}s", kind.to_lowercase());
    let schema = concord_structural::Schema::compile(&json!({"type": "object"})).expect("a schema");
    let storage = Storage {
        resource: GroupResource::new(group, plural.as_str()),
        kind: kind.to_owned(),
        version: version.clone(),
        encoding: version.clone(),
        namespaced: state.is_multiple_of(2),
        prefix: Bytes::from(format!("/registry/{group}/{plural}/")),
        strategy: Arc::new(Plain),
        converter: Arc::new(Renaming),
        forms: BTreeMap::from([(version.to_string(), ObjectForm::Custom(Arc::new(schema)))]),
        formed_since: 1,
        lifetime: None,
    };
    let (kind, list_kind) = (kind.to_owned(), format!("{kind}List"));
    // The definitions say what they are called.
    let names = ResourceNames { plural, kind, list_kind, singular: state.to_string(), ..Default::default() };
    let mut resource = Resource::new(version, names, Backing::Stored(Arc::new(storage)), Verb::ALL.to_vec());
    resource.subresources.extend(has_scale.then(scale));
    resource
}

fn scale() -> Subresource {
    let schema = concord_builtins::schema("autoscaling", "v1", "Scale").expect("a kind");
    let scaling = Scaling { spec_replicas: Vec::new(), status_replicas: Vec::new(), selector: None, schema };
    Subresource {
        name: "scale".to_owned(),
        kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
        verbs: vec![Verb::Get],
        behaviour: SubresourceKind::Scale(scaling),
    }
}

fn definition(resource: &Resource) -> Option<Value> {
    let schema = json!({"type": "object", "description": resource.names.singular});
    Some(json!({"versions": [{"name": resource.version.version, "schema": {"openAPIV3Schema": schema}}]}))
}

fn other((group, types, is_odd): &Other) -> (GroupVersion, Arc<ExtensionDocument>) {
    let version = GroupVersion::new(*group, "v1");
    let responses =
        types.iter().map(|name| (*name, json!({"schema": {"$ref": format!("#/definitions/{name}")}})));
    let responses: BTreeMap<_, _> = responses.collect();
    let of = if *is_odd { "string" } else { "object" };
    let meaning = |name: &str| {
        let kinds = json!([{"group": group, "version": "v1", "kind": name}]);
        json!({"type": of, "x-kubernetes-group-version-kind": kinds})
    };
    let path = format!("/apis/{group}/v1/{}", if *is_odd { "zebras" } else { "things" });
    let swagger = json!({
        "swagger": "2.0",
        "paths": {path: {"parameters": [{"$ref": "#/parameters/p"}], "get": {"responses": responses}}},
        "parameters": {"p": {"name": types.first()}},
        "definitions": types.iter().map(|name| (*name, meaning(name))).collect::<BTreeMap<_, _>>(),
    });
    let swagger = SwaggerPart::read(swagger.to_string().as_bytes(), &version).expect("a document");
    (version, Arc::new(ExtensionDocument::converted(&swagger)))
}

/// A server, which keeps what it can from one state to the next.
struct Server {
    context: Arc<Context>,
    built_in: Vec<Arc<ApiGroup>>,
    resources: BTreeMap<Defined, Arc<Resource>>,
    current: Option<Arc<Publication>>,
}

impl Server {
    fn new() -> Self {
        let context = Context {
            release: "1.36".to_owned(),
            annotations: Annotations::new(|| {
                let is_used = |name: &str| name.starts_with("io.k8s.api.a") || name.contains("meta");
                concord_builtins::annotations().into_iter().filter(|(name, _)| is_used(name)).collect()
            }),
            definitions: Box::new(definition),
            services: OPENID.iter().collect(),
            recent: Recent::default(),
            whole: Arc::new(Semaphore::new(1)),
            kept: Kept::default(),
        };
        let all = api_set(&Settings::default());
        let built_in = all.groups().iter().filter(|group| ["apps", "autoscaling"].contains(&group.name()));
        Self {
            context: Arc::new(context),
            built_in: built_in.cloned().collect(),
            resources: BTreeMap::new(),
            current: None,
        }
    }

    fn serve(&mut self, defined: &[Defined], others: &[Other]) -> Arc<Publication> {
        let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<Endpoint>>> = BTreeMap::new();
        for of in defined {
            let resource = self.resources.entry(*of).or_insert_with(|| Arc::new(resource(*of))).clone();
            groups.entry(of.0).or_default().entry(of.1).or_default().push(resource.into());
        }
        let group = |(name, versions): (&str, BTreeMap<&str, Vec<Endpoint>>)| {
            let version = |(version, endpoints)| ApiVersion::new(GroupVersion::new(name, version), endpoints);
            Arc::new(ApiGroup::new(name, 1, Origin::Custom, versions.into_iter().map(version)))
        };
        let set = ApiSet::new(self.built_in.iter().cloned().chain(groups.into_iter().map(group)));
        let others: ExtensionDocuments = others.iter().map(other).collect();
        let publication =
            Publication::new(Arc::new(set), Arc::new(others), self.context.clone(), self.current.as_deref());
        self.current.insert(Arc::new(publication)).clone()
    }
}

/// The document as it would be written at once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AtOnce {
    definitions: Members,
    info: Value,
    parameters: Map<String, Value>,
    paths: Members,
    security: Value,
    security_definitions: Value,
    swagger: &'static str,
}

/// All that is said in one map, in JSON and in protobuf.
fn at_once(publication: &Publication) -> [Vec<u8>; 2] {
    let leaves = || publication.leaves().filter_map(|leaf| leaf.subject());
    let part = |subject: &Subject| Part::new(subject, &publication.sources(subject.is_custom()));
    let all = leaves().map(part).fold(Part::default(), Part::with);
    let versions = leaves().filter_map(|subject| subject.version().cloned()).collect();
    let mut definitions = all.definitions;
    definitions.append(&mut all.common.shared_types(versions, &publication.sources(true)));
    let (mut definitions, mut paths) = (Sorted::from(definitions), Sorted::from(all.paths));
    let mut parameters = all.common.parameters;
    let mut whole = Whole { paths: &mut paths, definitions: &mut definitions, parameters: &mut parameters };
    publication
        .extensions()
        .filter_map(ExtensionDocument::swagger)
        .for_each(|part| merge::add(&mut whole, part));
    let bearer = json!({"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"});
    let document = AtOnce {
        definitions: definitions.into_members(),
        info: json!({"title": "Kubernetes", "version": "1.36"}),
        parameters,
        paths: paths.into_members(),
        security: json!([{"BearerToken": []}]),
        security_definitions: json!({"BearerToken": bearer}),
        swagger: "2.0",
    };
    let mut rest: Value = serde_json::from_slice(&to_json(&document)).expect("JSON");
    (rest["definitions"], rest["paths"]) = (json!({}), json!({}));
    let mut message = protobuf::encode(&rest, Dialect::V2);
    for (of, members) in [("definitions", &document.definitions), ("paths", &document.paths)] {
        for (name, member) in members {
            message.extend(protobuf::encode(&json!({of: {name: member.value()}}), Dialect::V2));
        }
    }
    [to_json(&document), message]
}

/// What a client reads.
pub(crate) fn sent(everything: &Everything, form: Form, gzip: bool) -> Vec<u8> {
    let body = Arc::new(everything.make(form)).body(gzip);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let sent = runtime.block_on(body.collect()).expect("a body").to_bytes();
    let mut read = Vec::new();
    match gzip {
        true => drop(GzDecoder::new(&*sent).read_to_end(&mut read).expect("gzip")),
        false => read.extend(sent),
    }
    read
}

/// States of a server, one after the other.
fn states() -> impl Strategy<Value = Vec<(Vec<Defined>, Vec<Other>)>> {
    let defined = (select(&GROUPS), select(&VERSIONS), select(&KINDS), any::<bool>(), 0_u8..4);
    let defined = prop::collection::vec(defined, 0..8).prop_map(|mut defined: Vec<Defined>| {
        // A group has a kind once.
        defined.sort_unstable_by_key(|(group, version, kind, ..)| (*group, *kind, *version));
        defined.dedup_by_key(|(group, _, kind, ..)| (*group, *kind));
        defined
    });
    let other = (select(&OTHERS), prop::sample::subsequence(&TYPES, 0..4), any::<bool>());
    let others = prop::collection::vec(other, 0..4).prop_map(|mut others: Vec<Other>| {
        let mut known = Vec::new();
        others.retain(|(group, ..)| {
            !known.contains(group) && {
                known.push(*group);
                true
            }
        });
        others
    });
    prop::collection::vec((defined, others), 1..4)
}

#[test]
fn the_document_is_what_it_would_be_if_it_were_written_at_once() {
    let mut server = Server::new();
    let _texts = server.context.annotations.texts();
    let mut hashes: BTreeMap<Arc<str>, Vec<u8>> = BTreeMap::new();
    let server = std::cell::RefCell::new(&mut server);
    let hashes = std::cell::RefCell::new(&mut hashes);
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    let run = TestRunner::new(config).run(&states(), |states| {
        for (defined, others) in states {
            let publication = server.borrow_mut().serve(&defined, &others);
            let everything = Arc::new(Everything::new(&publication));
            let [json, message] = at_once(&publication);
            for gzip in [false, true] {
                let told = sent(&everything, Form::Json, gzip);
                prop_assert!(
                    told == json,
                    "{} is not {}",
                    String::from_utf8_lossy(&told),
                    String::from_utf8_lossy(&json)
                );
                prop_assert!(sent(&everything, Form::Protobuf, gzip) == message);
            }
            // Another document has another hash, and the same one has it wherever it comes from.
            let mut hashes = hashes.borrow_mut();
            let known = hashes.entry(everything.hash().clone()).or_insert_with(|| json.clone());
            prop_assert!(*known == json);
            let elsewhere = Everything::new(&Server::new().serve(&defined, &others));
            prop_assert_eq!(elsewhere.hash(), everything.hash());
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

/// Which of these were packed for it.
fn new(before: &Everything, after: &Everything) -> usize {
    let runs =
        |of: &Everything| -> Vec<Arc<Run>> { of.definitions.iter().chain(&of.paths).cloned().collect() };
    let known = runs(before);
    runs(after).iter().filter(|run| !known.iter().any(|known| Arc::ptr_eq(known, run))).count()
}

#[test]
fn only_what_changed_is_packed_again() {
    let mut server = Server::new();
    let mut defined: Vec<Defined> = GROUPS.iter().map(|group| (*group, "v1", "apple", true, 0)).collect();
    let others = [("b.io", vec!["Apple", "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"], true)];
    let mut state = |defined: &[Defined]| Everything::new(&server.serve(defined, &others));
    let first = state(&defined);
    assert_eq!(new(&first, &state(&defined)), 0);
    // Its types, and its paths.
    defined[0].4 = 2;
    let changed = state(&defined);
    assert_ne!(first.hash(), changed.hash());
    assert_eq!(new(&first, &changed), 2);
    // Two types, which do not follow one another, know all versions there are.
    defined.push(("new.io", "v1", "apple", false, 0));
    let more = state(&defined);
    assert_eq!(new(&changed, &more), 4);
    // It is gone as if it had never been.
    defined.pop();
    let less = state(&defined);
    assert_eq!((new(&changed, &less), less.hash()), (2, changed.hash()));
}
