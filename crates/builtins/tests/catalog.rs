//! The catalog against the discovery documents of each release, and what only upstream's source tells.

mod support;

use concord_builtins::{
    Catalog, NameRule, Propagation, Release, ResourceFacts, StatusOnCreate, SubresourceFacts, schema,
};
use serde_json::{Value, json};
use support::{data, files};

fn resource(api_version: &str, plural: &str) -> &'static ResourceFacts {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    Catalog::latest().resource(group, version, plural).expect("a resource of the catalog")
}

fn all() -> impl Iterator<Item = &'static ResourceFacts> {
    Catalog::latest().versions().flat_map(|version| &version.resources)
}

fn of_all_releases() -> impl Iterator<Item = &'static ResourceFacts> {
    Release::all().flat_map(|release| Catalog::of(release).versions()).flat_map(|version| &version.resources)
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
fn every_resource_is_as_the_discovery_of_its_release_tells() {
    for release in Release::all() {
        let Some(data) = data(release) else { continue };
        let discovery = data.join("discovery");
        let mut compared = 0;
        for version in Catalog::of(release).versions().filter(|version| !version.is_ahead) {
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
            assert_eq!(Value::Array(found), document["resources"], "{release} {}", version.api_version());
            compared += 1;
        }
        let documents = files(&discovery, ".json");
        let is_version = |name: &str| name.matches("__").count() == 2 || name.ends_with("api__v1.json");
        assert_eq!(compared, documents.iter().filter(|path| is_version(&path.to_string_lossy())).count());
    }
}

#[test]
fn groups_and_versions_are_in_the_order_of_discovery() {
    for release in Release::all() {
        let Some(data) = data(release) else { continue };
        let document = support::json(&data.join("discovery/apis.json"));
        let found: Vec<(&str, Vec<&str>)> = Catalog::of(release).groups()[1..]
            .iter()
            .map(|group| {
                let versions = group.versions.iter().filter(|version| !version.is_ahead);
                (group.name, versions.map(|version| version.version).collect())
            })
            .collect();
        let text = |value: &'_ Value| value.as_str().expect("a name").to_owned();
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let expected: Vec<(String, Vec<String>)> = list(&document["groups"])
            .iter()
            .map(|group| {
                (text(&group["name"]), list(&group["versions"]).iter().map(|v| text(&v["version"])).collect())
            })
            .collect();
        let found: Vec<(String, Vec<String>)> = found
            .into_iter()
            .map(|(name, versions)| (name.to_owned(), versions.into_iter().map(str::to_owned).collect()))
            .collect();
        assert_eq!(found, expected, "{release}");
    }
}

/// What changed between the releases, resource by resource: the releases that serve it.
#[test]
fn resources_come_and_go_with_releases() {
    let served = |api_version: &str, plural: &str| -> Vec<String> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let has = |release: &Release| Catalog::of(*release).resource(group, version, plural).is_some();
        Release::all().filter(has).map(|release| release.to_string()).collect()
    };
    for (api_version, plural, releases) in [
        ("v1", "pods", "1.33 1.34 1.35 1.36"),
        ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", "1.36"),
        ("admissionregistration.k8s.io/v1beta1", "mutatingadmissionpolicies", "1.34 1.35 1.36"),
        ("admissionregistration.k8s.io/v1beta1", "validatingadmissionpolicies", "1.33"),
        ("certificates.k8s.io/v1alpha1", "podcertificaterequests", "1.34"),
        ("certificates.k8s.io/v1beta1", "podcertificaterequests", "1.35 1.36"),
        ("resource.k8s.io/v1", "resourceclaims", "1.34 1.35 1.36"),
        ("resource.k8s.io/v1alpha3", "resourceclaims", "1.33"),
        ("resource.k8s.io/v1beta2", "devicetaintrules", "1.36"),
        ("scheduling.k8s.io/v1alpha1", "workloads", "1.35"),
        ("scheduling.k8s.io/v1alpha2", "podgroups", "1.36"),
        ("storage.k8s.io/v1", "volumeattributesclasses", "1.34 1.35 1.36"),
        ("storage.k8s.io/v1alpha1", "volumeattributesclasses", "1.33 1.34"),
        ("storagemigration.k8s.io/v1", "storageversionmigrations", "1.36"),
        ("storagemigration.k8s.io/v1alpha1", "storageversionmigrations", "1.33 1.34"),
        ("storagemigration.k8s.io/v1beta1", "storageversionmigrations", "1.35 1.36"),
    ] {
        assert_eq!(served(api_version, plural).join(" "), releases, "{api_version} {plural}");
    }
    let status = |release: Release| {
        let rules = Catalog::of(release).resource("resource.k8s.io", "v1alpha3", "devicetaintrules");
        rules.expect("served").has_status()
    };
    assert_eq!(Release::all().map(status).collect::<Vec<_>>(), [false, false, true, true]);
}

/// The version that objects are stored in, in 1.33, 1.34, 1.35 and 1.36; nothing where the resource is not served.
#[test]
fn stored_versions_follow_the_release() {
    for (group, plural, stored) in [
        (
            "admissionregistration.k8s.io",
            "mutatingadmissionpolicies",
            ["v1alpha1", "v1alpha1", "v1beta1", "v1beta1"],
        ),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies", ["v1"; 4]),
        ("autoscaling", "horizontalpodautoscalers", ["v2"; 4]),
        ("certificates.k8s.io", "clustertrustbundles", ["v1beta1"; 4]),
        ("certificates.k8s.io", "podcertificaterequests", ["", "v1alpha1", "v1beta1", "v1beta1"]),
        ("coordination.k8s.io", "leasecandidates", ["v1beta1"; 4]),
        ("events.k8s.io", "events", ["v1"; 4]),
        ("networking.k8s.io", "ipaddresses", ["v1beta1", "v1", "v1", "v1"]),
        ("networking.k8s.io", "servicecidrs", ["v1beta1", "v1", "v1", "v1"]),
        ("resource.k8s.io", "resourceclaims", ["v1beta1", "v1beta2", "v1", "v1"]),
        ("resource.k8s.io", "resourceslices", ["v1beta1", "v1beta2", "v1", "v1"]),
        ("resource.k8s.io", "devicetaintrules", ["v1alpha3"; 4]),
        ("scheduling.k8s.io", "workloads", ["", "", "v1alpha1", "v1alpha2"]),
        ("storage.k8s.io", "volumeattributesclasses", ["v1beta1", "v1beta1", "v1beta1", "v1"]),
        (
            "storagemigration.k8s.io",
            "storageversionmigrations",
            ["v1alpha1", "v1alpha1", "v1beta1", "v1beta1"],
        ),
    ] {
        let found: Vec<&str> = Release::all()
            .map(|release| {
                let resources = Catalog::of(release).versions().flat_map(|version| &version.resources);
                let mut versions = resources
                    .filter(|facts| facts.group == group && facts.plural == plural)
                    .map(|facts| facts.storage.expect("stored").version);
                let first = versions.next().unwrap_or_default();
                assert!(versions.all(|version| version == first), "one storage for all versions of {plural}");
                first
            })
            .collect();
        assert_eq!(found, stored, "{plural}");
    }
}

#[test]
fn everything_that_can_be_written_has_a_schema() {
    let writes = |verbs: &[&str]| ["create", "update"].iter().any(|verb| verbs.contains(verb));
    for resource in of_all_releases() {
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
    let on = |group, version| Catalog::latest().version(group, version).expect("served").enabled_by_default();
    assert!(on("", "v1") && on("autoscaling", "v2") && on("resource.k8s.io", "v1"));
    assert!(!on("resource.k8s.io", "v1beta2") && !on("scheduling.k8s.io", "v1alpha2"));
    assert!(!on("storagemigration.k8s.io", "v1"), "upstream has it from 1.37 on");
    let priority = Catalog::latest().version("apps", "v1").expect("served").priority;
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
    assert_eq!(names(|facts| facts.strategy.generation).len(), 26);
    assert_eq!(names(|facts| facts.strategy.returns_deleted).len(), 19);
    assert_eq!(names(|facts| facts.strategy.name == NameRule::Label), ["namespaces", "statefulsets"]);
    assert_eq!(names(|facts| facts.strategy.name == NameRule::Service), ["services"]);
    assert_eq!(resource("v1", "nodes").strategy.status_on_create, StatusOnCreate::Keep);
    let namespaces = resource("v1", "namespaces");
    assert_eq!(namespaces.strategy.status_on_create, StatusOnCreate::Phase("Active"));
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
fn deprecated_resources_say_so_from_the_release_that_deprecates_them() {
    let warnings = |api_version: &str, plural: &str| -> Vec<Option<String>> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let facts = |release| Catalog::of(release).resource(group, version, plural);
        Release::all().map(|release| facts(release).and_then(ResourceFacts::deprecation_warning)).collect()
    };
    let said = |texts: [&str; 4]| texts.map(|text| (!text.is_empty()).then(|| text.to_owned()));
    let endpoints = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    assert_eq!(warnings("v1", "endpoints"), said([endpoints; 4]));
    assert_eq!(warnings("v1", "componentstatuses"), said(["v1 ComponentStatus is deprecated in v1.19+"; 4]));
    assert_eq!(warnings("v1", "pods"), said([""; 4]));
    let classes = "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; \
                   use storage.k8s.io/v1 VolumeAttributesClass";
    assert_eq!(
        warnings("storage.k8s.io/v1beta1", "volumeattributesclasses"),
        said(["", classes, classes, classes])
    );
    let alpha =
        "storage.k8s.io/v1alpha1 VolumeAttributesClass is deprecated in v1.32+, unavailable in v1.35+";
    assert_eq!(
        warnings("storage.k8s.io/v1alpha1", "volumeattributesclasses"),
        said([alpha, &format!("{alpha}; use storage.k8s.io/v1 VolumeAttributesClass"), "", ""])
    );
    let claims = "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+";
    assert_eq!(warnings("resource.k8s.io/v1beta1", "resourceclaims"), said(["", "", claims, claims]));
    assert_eq!(warnings("resource.k8s.io/v1alpha3", "resourceclaims"), said([""; 4]));
    assert_eq!(warnings("admissionregistration.k8s.io/v1beta1", "mutatingadmissionpolicies"), said([""; 4]));
}
