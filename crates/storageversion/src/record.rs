//! What a server has to say about the resources it stores.

use std::cmp::Ordering;

use concord_store::Revision;
use serde_json::{Map, Value};

use crate::Keys;

/// A resource that a server stores objects of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The group; empty for the core group.
    pub group: String,
    /// The resource, in the plural.
    pub resource: String,
    /// The version objects are written in: `v1` or `group/version`.
    pub encoding: String,
    /// The versions that can be read, the preferred ones first.
    pub decodable: Vec<String>,
    /// The versions that are served, sorted: a repeated registration must change nothing.
    pub served: Vec<String>,
    /// What objects are encrypted with.
    pub keys: Keys,
    /// The definition of a custom resource.
    pub owner: Option<Owner>,
}

/// The definition that a custom resource is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its name, `plural.group`.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The revision it was read at.
    pub revision: Revision,
}

/// The name of the StorageVersion of a resource.
///
/// ```
/// assert_eq!(concord_storageversion::object_name("", "pods"), "core.pods");
/// assert_eq!(concord_storageversion::object_name("apps", "deployments"), "apps.deployments");
/// ```
pub fn object_name(group: &str, resource: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    format!("{group}.{resource}")
}

/// The group and the resource that a name stands for: the group is before the last dot.
pub fn parse_object_name(name: &str) -> Option<(&str, &str)> {
    let (group, resource) = name.rsplit_once('.')?;
    Some((if group == "core" { "" } else { group }, resource))
}

/// The resources that others need come first: a server cannot even say who it is before leases and StorageVersions are
/// registered, and is of no use without namespaces and roles.
pub fn priority(group: &str, resource: &str) -> u8 {
    match (group, resource) {
        ("coordination.k8s.io", "leases")
        | ("internal.apiserver.k8s.io", "storageversions")
        | ("", "namespaces") => 0,
        ("rbac.authorization.k8s.io" | "scheduling.k8s.io", _) => 1,
        _ => 2,
    }
}

/// The order of registration: by importance, then by group and resource, the core group first. It is the same on every
/// server, so that those that start together are not in each other's way.
pub fn order(one: &Record, other: &Record) -> Ordering {
    let key = |record: &Record| (priority(&record.group, &record.resource), record.owner.is_some());
    key(one).cmp(&key(other)).then_with(|| (&one.group, &one.resource).cmp(&(&other.group, &other.resource)))
}

impl Record {
    /// The name of its StorageVersion.
    pub fn name(&self) -> String {
        object_name(&self.group, &self.resource)
    }

    /// What a CustomResourceDefinition defines, at the revision it was read at; `None` if it is not complete.
    pub fn of_definition(definition: &Map<String, Value>, revision: Revision) -> Option<Self> {
        let (metadata, spec) = (definition.get("metadata")?, definition.get("spec")?);
        let group = spec["group"].as_str()?.to_owned();
        let resource = spec["names"]["plural"].as_str()?.to_owned();
        let versions = spec["versions"].as_array()?;
        let name = |version: &Value| Some(format!("{group}/{}", version["name"].as_str()?));
        let stored = versions.iter().find(|version| version["storage"] == true)?;
        let mut served: Vec<String> =
            versions.iter().filter(|version| version["served"] == true).filter_map(name).collect();
        served.sort();
        Some(Self {
            encoding: name(stored)?,
            decodable: versions.iter().filter_map(name).collect(),
            served,
            keys: Keys::default(),
            owner: Some(Owner {
                name: metadata["name"].as_str()?.to_owned(),
                uid: metadata["uid"].as_str()?.to_owned(),
                revision,
            }),
            group,
            resource,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_the_group_and_the_resource() {
        for (name, parsed) in [
            ("core.pods", Some(("", "pods"))),
            ("rbac.authorization.k8s.io.roles", Some(("rbac.authorization.k8s.io", "roles"))),
            ("pods", None),
        ] {
            assert_eq!(parse_object_name(name), parsed);
            if let Some((group, resource)) = parsed {
                assert_eq!(object_name(group, resource), name);
            }
        }
    }

    #[test]
    fn what_others_need_comes_first() {
        let record = |group: &str, resource: &str| Record {
            group: group.to_owned(),
            resource: resource.to_owned(),
            ..Record::default()
        };
        let mut records = [
            record("apps", "deployments"),
            record("rbac.authorization.k8s.io", "roles"),
            record("", "pods"),
            record("coordination.k8s.io", "leases"),
            record("", "configmaps"),
            record("", "namespaces"),
        ];
        records.sort_by(order);
        let names: Vec<&str> = records.iter().map(|record| record.resource.as_str()).collect();
        assert_eq!(names, ["namespaces", "leases", "roles", "configmaps", "pods", "deployments"]);
    }

    #[test]
    fn a_definition_says_how_its_objects_are_stored() {
        let definition = json!({
            "metadata": {"name": "foos.example.com", "uid": "u"},
            "spec": {"group": "example.com", "names": {"plural": "foos"}, "versions": [
                {"name": "v2", "served": true, "storage": false},
                {"name": "v1", "served": false, "storage": true},
                {"name": "v1beta1", "served": true, "storage": false},
            ]},
        });
        let record = Record::of_definition(definition.as_object().expect("an object"), 7).expect("complete");
        assert_eq!(record.name(), "example.com.foos");
        assert_eq!(record.encoding, "example.com/v1", "also one that is not served");
        assert_eq!(record.decodable, ["example.com/v2", "example.com/v1", "example.com/v1beta1"]);
        assert_eq!(record.served, ["example.com/v1beta1", "example.com/v2"]);
        assert_eq!(
            record.owner.map(|owner| (owner.name, owner.revision)),
            Some(("foos.example.com".to_owned(), 7))
        );
        assert_eq!(Record::of_definition(&Map::new(), 7), None);
    }
}
