//! The catalog against the discovery documents of the release, and what only upstream's source tells.

mod support;

use concord_builtins::{
    Catalog, NameRule, Propagation, ResourceFacts, StatusOnCreate, SubresourceFacts, schema,
};
use serde_json::{Value, json};
use support::{data, files};

fn resource(api_version: &str, plural: &str) -> &'static ResourceFacts {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    Catalog::v1_36().resource(group, version, plural).expect("a resource of the catalog")
}

fn all() -> impl Iterator<Item = &'static ResourceFacts> {
    Catalog::v1_36().versions().flat_map(|version| &version.resources)
}

/// An entry of an APIResourceList.
fn discovered(resource: &ResourceFacts) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs,
    });
    let mut set = |name: &str, value: Value| entry[name] = value;
    if !resource.short_names.is_empty() {
        set("shortNames", json!(resource.short_names));
    }
    if !resource.categories.is_empty() {
        set("categories", json!(resource.categories));
    }
    if let Some(hash) = resource.storage_version_hash() {
        set("storageVersionHash", hash.into());
    }
    entry
}

fn discovered_part(resource: &ResourceFacts, part: &SubresourceFacts) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, part.name), "singularName": "",
        "namespaced": resource.namespaced, "kind": part.kind, "verbs": part.verbs,
    });
    if (part.group, part.version) != (resource.group, resource.version) {
        entry["group"] = part.group.into();
        entry["version"] = part.version.into();
    }
    entry
}

#[test]
fn every_resource_is_as_discovery_tells() {
    let Some(data) = data() else { return };
    let discovery = data.join("discovery");
    let mut compared = 0;
    for version in Catalog::v1_36().versions() {
        let name = if version.group.is_empty() {
            "api__v1.json".to_owned()
        } else {
            format!("apis__{}__{}.json", version.group, version.version)
        };
        let document = support::json(&discovery.join(name));
        assert_eq!(document["groupVersion"], version.api_version());
        let mut found = Vec::new();
        for resource in &version.resources {
            found.push(discovered(resource));
            found.extend(resource.subresources.iter().map(|part| discovered_part(resource, part)));
        }
        assert_eq!(Value::Array(found), document["resources"]);
        compared += 1;
    }
    let documents = files(&discovery, ".json");
    let is_version = |name: &str| name.matches("__").count() == 2 || name.ends_with("api__v1.json");
    assert_eq!(compared, documents.iter().filter(|path| is_version(&path.to_string_lossy())).count());
}

#[test]
fn groups_and_versions_are_in_the_order_of_discovery() {
    let Some(data) = data() else { return };
    let document = support::json(&data.join("discovery/apis.json"));
    let groups = &Catalog::v1_36().groups()[1..];
    let found: Vec<_> = groups
        .iter()
        .map(|group| {
            let versions: Vec<_> = group.versions.iter().map(|version| version.version).collect();
            (group.name.to_owned(), versions)
        })
        .collect();
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let expected: Vec<_> = list(&document["groups"])
        .iter()
        .map(|group| {
            (text(&group["name"]), list(&group["versions"]).iter().map(|v| text(&v["version"])).collect())
        })
        .collect();
    let found: Vec<(String, Vec<String>)> = found
        .into_iter()
        .map(|(name, versions)| (name, versions.into_iter().map(str::to_owned).collect()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn everything_that_can_be_written_has_a_schema() {
    let writes = |verbs: &[&str]| ["create", "update"].iter().any(|verb| verbs.contains(verb));
    for resource in all() {
        if writes(&resource.verbs) {
            assert!(schema(resource.group, resource.version, resource.kind).is_some(), "{resource:?}");
        }
        // Connections have their options in the query.
        let parts = resource.subresources.iter().filter(|part| writes(&part.verbs));
        for part in parts.filter(|part| !part.kind.ends_with("Options")) {
            assert!(schema(part.group, part.version, part.kind).is_some(), "{part:?}");
        }
    }
    assert!(schema("", "v1", "DeleteOptions").is_some());
    assert!(schema("", "v1", "Status").is_some());
    assert!(schema("", "v2", "Pod").is_none());
}

#[test]
fn only_stable_versions_are_on() {
    let on = |group, version| Catalog::v1_36().version(group, version).expect("served").enabled_by_default();
    assert!(on("", "v1") && on("autoscaling", "v2") && on("resource.k8s.io", "v1"));
    assert!(!on("resource.k8s.io", "v1beta2") && !on("scheduling.k8s.io", "v1alpha2"));
    let priority = Catalog::v1_36().version("apps", "v1").expect("served").priority;
    assert_eq!(priority.map(|priority| (priority.group, priority.version)), Some((17_800, 15)));
}

#[test]
fn objects_are_stored_where_upstream_stores_them() {
    for (api_version, plural, key, stored) in [
        ("v1", "configmaps", "configmaps", "v1"),
        ("v1", "nodes", "minions", "v1"),
        ("v1", "services", "services/specs", "v1"),
        ("v1", "endpoints", "services/endpoints", "v1"),
        ("v1", "replicationcontrollers", "controllers", "v1"),
        ("networking.k8s.io/v1", "ingresses", "ingress", "networking.k8s.io/v1"),
        ("autoscaling/v1", "horizontalpodautoscalers", "horizontalpodautoscalers", "autoscaling/v2"),
        ("events.k8s.io/v1", "events", "events", "v1"),
        ("resource.k8s.io/v1beta1", "resourceclaims", "resourceclaims", "resource.k8s.io/v1"),
        ("resource.k8s.io/v1beta2", "devicetaintrules", "devicetaintrules", "resource.k8s.io/v1alpha3"),
        (
            "apiregistration.k8s.io/v1",
            "apiservices",
            "apiregistration.k8s.io/apiservices",
            "apiregistration.k8s.io/v1",
        ),
    ] {
        let storage = resource(api_version, plural).storage.expect("stored");
        let version = [storage.group, storage.version].join("/");
        assert_eq!((storage.key, version.trim_start_matches('/')), (key, stored));
    }
    assert!(resource("v1", "bindings").storage.is_none());
    assert!(resource("v1", "componentstatuses").storage.is_none());
    assert!(resource("authorization.k8s.io/v1", "subjectaccessreviews").storage.is_none());
}

#[test]
fn updates_and_deletions_follow_the_strategies() {
    let names = |wanted: fn(&ResourceFacts) -> bool| -> Vec<&str> {
        let mut names: Vec<_> = all().filter(|facts| wanted(facts)).map(|facts| facts.plural).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    assert_eq!(
        names(|facts| facts.strategy.create_on_update),
        [
            "clusterrolebindings",
            "clusterroles",
            "endpoints",
            "events",
            "leasecandidates",
            "leases",
            "limitranges",
            "rolebindings",
            "roles",
            "runtimeclasses",
            "services",
        ]
    );
    assert_eq!(
        names(|facts| facts.strategy.propagation == Propagation::Orphan),
        ["jobs", "replicationcontrollers"]
    );
    assert_eq!(names(|facts| facts.strategy.ttl.is_some()), ["events"]);
    assert_eq!(names(|facts| facts.strategy.conditional_update).len(), 21);
    assert_eq!(names(|facts| facts.strategy.generation).len(), 27);
    assert_eq!(names(|facts| facts.strategy.returns_deleted).len(), 19);
    assert_eq!(
        names(|facts| facts.strategy.name == NameRule::Label),
        ["namespaces", "services", "statefulsets"]
    );
    assert_eq!(resource("v1", "nodes").strategy.status_on_create, StatusOnCreate::Keep);
    assert_eq!(resource("v1", "pods").strategy.status_on_create, StatusOnCreate::Phase("Pending"));
}

#[test]
fn writes_leave_the_fields_of_others_alone() {
    let reset = |plural, part| resource("apps/v1", plural).reset_fields(part);
    assert_eq!(reset("deployments", None), ["status"]);
    assert_eq!(reset("deployments", Some("status")), ["spec", "metadata.labels"]);
    assert_eq!(reset("daemonsets", Some("status")), ["spec"]);
    assert_eq!(reset("deployments", Some("scale")), [""; 0]);
    assert_eq!(reset("controllerrevisions", None), [""; 0]);
    let requests = resource("certificates.k8s.io/v1", "certificatesigningrequests");
    assert_eq!(requests.reset_fields(None), ["status", "spec"]);
    assert_eq!(requests.reset_fields(Some("approval")), ["spec", "status.certificate"]);
}

#[test]
fn selectors_know_the_fields_of_their_kind() {
    let pods = resource("v1", "pods");
    let field = |label: &str| pods.strategy.fields.iter().find(|field| field.label == label).expect("known");
    assert_eq!(field("spec.host").paths, ["spec.nodeName"]);
    assert_eq!((field("spec.hostNetwork").zero, field("status.podIPs").paths.len()), ("false", 0));
    let events = &resource("v1", "events").strategy.fields;
    let source = events.iter().find(|field| field.label == "source").expect("known");
    assert_eq!(source.paths, ["source.component", "reportingComponent"]);
    assert_eq!(pods.unsupported_field("a.b"), "field label not supported: a.b");
    assert_eq!(
        resource("v1", "configmaps").unsupported_field("a.b"),
        "\"a.b\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    assert_eq!(
        resource("batch/v1", "jobs").unsupported_field("a"),
        "field label \"a\" not supported for Job"
    );
    assert_eq!(
        resource("resource.k8s.io/v1", "resourceslices").unsupported_field("a"),
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a"
    );
}

#[test]
fn deprecated_resources_say_so() {
    let warning = |api_version, plural| resource(api_version, plural).deprecation_warning();
    assert_eq!(
        warning("v1", "endpoints").as_deref(),
        Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    );
    assert_eq!(
        warning("storage.k8s.io/v1beta1", "volumeattributesclasses").as_deref(),
        Some(
            "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; \
             use storage.k8s.io/v1 VolumeAttributesClass"
        )
    );
    assert_eq!(warning("v1", "pods"), None);
}
