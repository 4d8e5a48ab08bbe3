//! What a definition says, read once.

use std::sync::Arc;

use aws_lc_rs::digest;
use concord_meta::{GroupVersion, versions::compare};
use concord_registry::{Object, metadata};
use concord_rules::Rules;
use concord_structural::{JsonPath, Scale, Schema};
use serde_json::{Value, json};

use crate::webhook::Webhook;

/// The names of a custom resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// A CustomResourceDefinition, as far as serving it needs.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) uid: String,
    pub(crate) group: String,
    /// Those that were accepted.
    pub(crate) names: Names,
    pub(crate) namespaced: bool,
    /// The name of the version in which objects are stored.
    pub(crate) stored: String,
    pub(crate) versions: Vec<Arc<Version>>,
    pub(crate) conversion: Conversion,
    pub(crate) is_established: bool,
    pub(crate) is_terminating: bool,
}

/// How an object of one version becomes one of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// By its name alone.
    None,
    /// By asking somebody.
    Webhook(Webhook),
}

/// A version of a definition.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    is_deprecated: bool,
    /// What every client of a deprecated version is told, if the definition says that itself.
    deprecation_warning: Option<String>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) rules: Rules,
    pub(crate) columns: Vec<Value>,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
    /// The fields to select by, as they are called, and where they are.
    pub(crate) selectable: Vec<(String, JsonPath)>,
    /// Of what all this was read from, to see whether it changed. To keep that itself would take more memory than all the
    /// rest.
    digest: [u8; 32],
}

impl Names {
    pub(crate) fn of(names: &Value) -> Self {
        let text = |name: &str| names[name].as_str().unwrap_or_default().to_owned();
        let texts = |name: &str| {
            let items = names[name].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        };
        Self {
            plural: text("plural"),
            singular: text("singular"),
            kind: text("kind"),
            list_kind: text("listKind"),
            short_names: texts("shortNames"),
            categories: texts("categories"),
        }
    }

    /// As they stand in a status.
    pub(crate) fn value(&self) -> Value {
        let mut value = json!({"plural": self.plural, "kind": self.kind});
        let texts = [("singular", &self.singular), ("listKind", &self.list_kind)];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            value[name] = text.as_str().into();
        }
        let lists = [("shortNames", &self.short_names), ("categories", &self.categories)];
        for (name, texts) in lists.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            value[name] = texts.clone().into();
        }
        value
    }
}

/// Whether a condition of a definition is true.
pub(crate) fn holds(definition: &Object, condition: &str) -> bool {
    let conditions = definition.get("status").and_then(|status| status["conditions"].as_array());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|given| given["type"] == condition && given["status"] == "True")
}

impl Definition {
    /// What an object of the log says, if it is a definition whose names were accepted. What did not change is taken
    /// from `before`. `minor` is the oldest minor version of Kubernetes that the server has to get along with.
    pub(crate) fn read(object: &Object, minor: u16, before: Option<&Self>) -> Option<Self> {
        let names = Names::of(object.get("status")?.get("acceptedNames")?);
        Self::read_as(names, object, minor, before)
    }

    /// The same for a definition that has lost names it once had, as if it still had all it wants: its objects are where
    /// they were written.
    pub(crate) fn read_wanted(object: &Object, minor: u16) -> Option<Self> {
        Self::read_as(Names::of(object.get("spec")?.get("names")?), object, minor, None)
    }

    fn read_as(names: Names, object: &Object, minor: u16, before: Option<&Self>) -> Option<Self> {
        if names.plural.is_empty() || names.kind.is_empty() {
            return None;
        }
        let spec = object.get("spec")?;
        let group = spec["group"].as_str()?.to_owned();
        let versions = spec["versions"].as_array()?;
        let preserves = spec["preserveUnknownFields"] == true;
        let schemas = Schemas { place: (&group, &names.plural), minor, preserves };
        let versions = versions.iter().filter_map(|version| Version::read(version, &schemas, before));
        let conversion = match spec["conversion"]["strategy"] == "Webhook" {
            true => Conversion::Webhook(Webhook::read(&spec["conversion"]["webhook"])),
            false => Conversion::None,
        };
        let metadata = metadata(object);
        Some(Self {
            uid: metadata.uid().to_owned(),
            namespaced: spec["scope"] == "Namespaced",
            stored: stored_version(spec)?.to_owned(),
            versions: versions.collect(),
            conversion,
            is_established: holds(object, "Established"),
            is_terminating: metadata.is_terminating(),
            group,
            names,
        })
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Arc<Version>> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// What every client of a version is told: that it is deprecated, and which one to use instead.
    pub(crate) fn warning(&self, version: &Version) -> Option<String> {
        if !version.is_deprecated {
            return None;
        }
        if version.deprecation_warning.is_some() {
            return version.deprecation_warning.clone();
        }
        let (group, kind) = (&self.group, &self.names.kind);
        let better = self.versions.iter().filter(|other| other.served && !other.is_deprecated);
        let newest = better.map(|other| &other.name).max_by(|one, other| compare(one, other));
        let newer = newest.filter(|newest| compare(newest, &version.name).is_gt());
        let instead = newer.map(|newer| format!("; use {group}/{newer} {kind}")).unwrap_or_default();
        Some(format!("{group}/{} {kind} is deprecated{instead}", version.name))
    }

    /// Whether objects written by one are as the other would write them. What the status says does not matter for that.
    pub(crate) fn writes_as(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Version>, &Arc<Version>)| Arc::ptr_eq(one, other);
        self.uid == other.uid
            && self.stored == other.stored
            && self.conversion == other.conversion
            && self.versions.len() == other.versions.len()
            && self.versions.iter().zip(&other.versions).all(same)
    }

    pub(crate) fn group_version(&self, version: &str) -> GroupVersion {
        GroupVersion::new(self.group.as_str(), version)
    }
}

fn stored_version(spec: &Value) -> Option<&str> {
    let versions = spec["versions"].as_array()?;
    versions.iter().find(|version| version["storage"] == true)?["name"].as_str()
}

/// How the schemas of a definition are read, whatever they say.
struct Schemas<'a> {
    /// The group and the plural, for people.
    place: (&'a str, &'a str),
    minor: u16,
    /// Whether nothing is pruned.
    preserves: bool,
}

impl Schemas<'_> {
    fn compile(&self, version: &str, schema: &Value) -> Option<Schema> {
        let (group, plural) = self.place;
        let schema = Schema::compile(schema).inspect_err(|error| {
            tracing::warn!(group, plural, version, %error, "A version of a CustomResourceDefinition cannot be served.");
        });
        let schema = schema.ok()?.compatible_with(self.minor);
        Some(if self.preserves { schema.preserving_unknown_fields() } else { schema })
    }
}

impl Version {
    fn read(version: &Value, schemas: &Schemas<'_>, before: Option<&Definition>) -> Option<Arc<Self>> {
        let name = version["name"].as_str()?.to_owned();
        let digest = digest(version, schemas.preserves);
        if let Some(before) = before.and_then(|before| before.version(&name))
            && before.digest == digest
        {
            return Some(Arc::clone(before));
        }
        let schema = schemas.compile(&name, &version["schema"]["openAPIV3Schema"])?;
        let subresources = &version["subresources"];
        let schema = Arc::new(schema);
        Some(Arc::new(Self {
            served: version["served"] == true,
            is_deprecated: version["deprecated"] == true,
            deprecation_warning: version["deprecationWarning"].as_str().map(ToOwned::to_owned),
            rules: Rules::compile(&schema),
            schema,
            columns: version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
            has_status: subresources["status"].is_object(),
            scale: scale(&subresources["scale"]),
            selectable: selectable(&version["selectableFields"]),
            digest,
            name,
        }))
    }
}

fn digest(version: &Value, preserves: bool) -> [u8; 32] {
    let mut text = concord_codec::encode(version);
    text.push(u8::from(preserves));
    let digest = digest::digest(&digest::SHA256, &text);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn scale(scale: &Value) -> Option<Scale> {
    Some(Scale {
        spec_replicas: scale["specReplicasPath"].as_str()?.to_owned(),
        status_replicas: scale["statusReplicasPath"].as_str()?.to_owned(),
        label_selector: scale["labelSelectorPath"].as_str().filter(|path| !path.is_empty()).map(Into::into),
    })
}

fn selectable(fields: &Value) -> Vec<(String, JsonPath)> {
    let fields = fields.as_array().into_iter().flatten();
    let paths = fields.filter_map(|field| field["jsonPath"].as_str());
    let read = |path: &str| {
        let label = path.strip_prefix('.').unwrap_or(path).to_owned();
        Some((label, JsonPath::parse(path).ok()?))
    };
    paths.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value, generation: i64) -> Object {
        let names = json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList", "shortNames": ["f"]});
        let object = json!({
            "metadata": {"name": "foos.example.com", "uid": "u", "generation": generation},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": names,
                "versions": [
                    {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                     "subresources": {"status": {}}, "selectableFields": [{"jsonPath": ".spec.color"}]},
                    {"name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                     "schema": {"openAPIV3Schema": {"type": "object"}}},
                ],
            },
            "status": {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]},
        });
        object.as_object().expect("an object").clone()
    }

    #[test]
    fn a_definition_is_read() {
        let read =
            Definition::read(&definition(&json!({"type": "object"}), 1), 36, None).expect("a definition");
        assert_eq!((read.group.as_str(), read.stored.as_str()), ("example.com", "v1"));
        assert!(read.namespaced && read.is_established && !read.is_terminating);
        assert_eq!(read.names.short_names, ["f"]);
        let (v1, beta) = (read.version("v1").expect("v1"), read.version("v1beta1").expect("v1beta1"));
        assert!(v1.has_status && v1.scale.is_none() && read.warning(v1).is_none());
        assert_eq!(v1.selectable[0].0, "spec.color");
        let deprecated = "example.com/v1beta1 Foo is deprecated; use example.com/v1 Foo";
        assert_eq!(read.warning(beta).as_deref(), Some(deprecated));
    }

    #[test]
    fn what_did_not_change_is_not_read_again() {
        let schema = json!({"type": "object"});
        let first = Definition::read(&definition(&schema, 1), 36, None).expect("a definition");
        let same = Definition::read(&definition(&schema, 2), 36, Some(&first)).expect("a definition");
        assert!(first.writes_as(&same));
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        let other = Definition::read(&definition(&schema, 3), 36, Some(&same)).expect("a definition");
        assert!(!same.writes_as(&other));
        let beta = |definition: &Definition| Arc::clone(definition.version("v1beta1").expect("v1beta1"));
        assert!(Arc::ptr_eq(&beta(&same), &beta(&other)), "only the one that changed");
    }

    #[test]
    fn that_nothing_is_pruned_any_more_is_a_change() {
        let pruning = definition(&json!({"type": "object"}), 1);
        let mut preserving = pruning.clone();
        preserving["spec"]["preserveUnknownFields"] = true.into();
        let preserved = Definition::read(&preserving, 36, None).expect("a definition");
        let pruned = Definition::read(&pruning, 36, Some(&preserved)).expect("a definition");
        assert!(!preserved.writes_as(&pruned));
        let unknown = |definition: &Definition| {
            let mut object = json!({"x": 1}).as_object().expect("an object").clone();
            definition.version("v1").expect("v1").schema.prune(&mut object)
        };
        assert_eq!((unknown(&preserved), unknown(&pruned)), (Vec::new(), vec!["x".to_owned()]));
    }

    #[test]
    fn formats_that_an_older_release_does_not_know_demand_nothing() {
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "string", "format": "k8s-short-name"}}});
        let object = json!({"spec": "A_"});
        let errors = |minor: u16| {
            let read = Definition::read(&definition(&schema, 1), minor, None).expect("a definition");
            let object = object.as_object().expect("an object");
            read.version("v1").expect("v1").schema.validate_create(object, None).len()
        };
        assert_eq!((errors(33), errors(34)), (0, 1));
    }

    #[test]
    fn without_accepted_names_there_is_nothing_to_serve() {
        let mut object = definition(&json!({"type": "object"}), 1);
        object.remove("status");
        assert!(Definition::read(&object, 36, None).is_none());
    }
}
