//! The resources of the tests: widgets with all that a resource can have, and a few odd ones.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use concord_codec::ListOrder;
use concord_endpoints::{ApiGroup, ApiSet, ApiVersion, Endpoint, Origin};
use concord_meta::{GroupResource, GroupVersion, GroupVersionKind, Status};
use concord_registry::{
    Backing, Context, Deprecation, Invocation, Object, Part, Renaming, Resource, ResourceNames, Scaling,
    Storage, Strategy, Subresource, SubresourceKind, Verb, Virtual, metadata_mut,
};
use concord_schema::{Builder, ListType, Presence, Scalar, Schema, TypeId};

/// Widgets warn about a text, and are deleted with grace if they ask for it.
struct Widgets;

impl Strategy for Widgets {
    fn prepare_for_update(&self, _: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
        let keep = if part == Part::Main { "status" } else { "spec" };
        match old.get(keep) {
            Some(value) => drop(new.insert(keep.to_owned(), value.clone())),
            None => drop(new.remove(keep)),
        }
    }

    fn warnings(&self, _: &Context, _: Part<'_>, new: &Object, _: Option<&Object>) -> Vec<String> {
        let text = new.get("spec").and_then(|spec| spec.get("text")).and_then(|text| text.as_str());
        text.filter(|text| *text == "odd").map(|_| "an odd \"text\"".to_owned()).into_iter().collect()
    }
}

struct Plain;

impl Strategy for Plain {}

/// Answers with what it got and the name it was called on.
struct Echo;

#[async_trait]
impl Virtual for Echo {
    fn schema(&self) -> Arc<Schema> {
        Arc::new(widget_schema())
    }

    async fn create(&self, invocation: Invocation<'_>, mut body: Object) -> Result<Object, Status> {
        metadata_mut(&mut body).insert("name".to_owned(), invocation.name.name.into());
        Ok(body)
    }
}

fn object_meta(types: &mut Builder) -> TypeId {
    let string = types.scalar("string", Scalar::String);
    let strings = types.map("map[string]string", string);
    let set = types.list("[]string", string, ListType::Set);
    let time = types.scalar("v1.Time", Scalar::Time);
    let int = types.scalar("int64", Scalar::Int64);
    let any = types.scalar("interface {}", Scalar::FreeForm);
    let list = types.list("[]any", any, ListType::Atomic);
    let mut meta = types.structure("v1.ObjectMeta");
    for name in ["name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"] {
        meta = meta.field(name, string, Presence::NonZero);
    }
    meta.field("labels", strings, Presence::NonZero)
        .field("annotations", strings, Presence::NonZero)
        .field("finalizers", set, Presence::NonZero)
        .field("creationTimestamp", time, Presence::NonZero)
        .field("deletionTimestamp", time, Presence::NonZero)
        .field("deletionGracePeriodSeconds", int, Presence::Given)
        .field("generation", int, Presence::NonZero)
        .field("ownerReferences", list, Presence::NonZero)
        .field("managedFields", list, Presence::NonZero)
        .add()
}

fn schema(go: &str, parts: &[(&str, &str)]) -> Schema {
    let mut types = Builder::new();
    let string = types.scalar("string", Scalar::String);
    let int = types.scalar("int32", Scalar::Int32);
    let meta = object_meta(&mut types);
    let mut object = Vec::new();
    for (part, text) in parts {
        let part_type = types
            .structure(&format!("{go}.{part}"))
            .field("replicas", int, Presence::NonZero)
            .field(text, string, Presence::NonZero)
            .add();
        object.push((*part, part_type));
    }
    let mut kind = types
        .structure(go)
        .field("kind", string, Presence::NonZero)
        .field("apiVersion", string, Presence::NonZero)
        .field("metadata", meta, Presence::Always);
    for (part, part_type) in object {
        kind = kind.field(part, part_type, Presence::NonZero);
    }
    let kind = kind.add();
    Schema::new(types.finish().place(kind))
}

fn widget_schema() -> Schema {
    schema("v1.Widget", &[("spec", "text"), ("status", "text")])
}

fn scaling() -> Scaling {
    let path = |names: [&str; 2]| names.iter().map(|name| (*name).to_owned()).collect();
    Scaling {
        spec_replicas: path(["spec", "replicas"]),
        status_replicas: path(["status", "replicas"]),
        selector: None,
        schema: Arc::new(schema("v1.Scale", &[("spec", "text"), ("status", "selector")])),
    }
}

fn names(plural: &str, kind: &str) -> ResourceNames {
    ResourceNames {
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        ..ResourceNames::default()
    }
}

fn stored(
    version: &GroupVersion,
    plural: &str,
    kind: &str,
    namespaced: bool,
    strategy: impl Strategy,
) -> Resource {
    let storage = Storage {
        resource: GroupResource::new(version.group.clone(), plural),
        kind: kind.to_owned(),
        version: version.clone(),
        encoding: version.clone(),
        namespaced,
        prefix: format!("/registry/{plural}/").into(),
        strategy: Arc::new(strategy),
        converter: Arc::new(Renaming),
        forms: BTreeMap::from([(version.to_string(), Arc::new(widget_schema()).into())]),
        formed_since: 0,
        lifetime: None,
    };
    Resource::new(
        version.clone(),
        names(plural, kind),
        Backing::Stored(Arc::new(storage)),
        Verb::ALL.to_vec(),
    )
}

fn below(name: &str, kind: GroupVersionKind, verbs: &[Verb], behaviour: SubresourceKind) -> Subresource {
    Subresource { name: name.to_owned(), kind, verbs: verbs.to_vec(), behaviour }
}

fn widgets(version: &GroupVersion) -> Resource {
    let mut widgets = stored(version, "widgets", "Widget", true, Widgets);
    let changes = [Verb::Get, Verb::Patch, Verb::Update];
    let scale = GroupVersionKind::new("autoscaling", "v1", "Scale");
    let connection = || version.with_kind("WidgetOptions");
    let unreachable = || SubresourceKind::Unreachable("nobody is there");
    widgets.names.short_names = vec!["wd".to_owned()];
    widgets.names.categories = vec!["all".to_owned()];
    widgets.storage_version_hash = "hash=".to_owned();
    widgets.subresources = vec![
        below("echo", version.with_kind("Widget"), &[Verb::Create], SubresourceKind::Virtual(Arc::new(Echo))),
        below("exec", connection(), &[Verb::Create, Verb::Get], unreachable()),
        below("proxy", connection(), &[Verb::Create, Verb::Get], unreachable()),
        below("scale", scale, &changes, SubresourceKind::Scale(scaling())),
        below("status", version.with_kind("Widget"), &changes, SubresourceKind::Part),
    ];
    widgets
}

fn virtual_only(version: &GroupVersion, plural: &str, kind: &str, namespaced: bool) -> Resource {
    let names = names(plural, kind);
    let mut resource =
        Resource::new(version.clone(), names, Backing::Virtual(Arc::new(Echo)), vec![Verb::Create]);
    resource.namespaced = namespaced;
    resource
}

fn group(name: &str, priority: i32, origin: Origin, resources: Vec<Resource>) -> Arc<ApiGroup> {
    let endpoints = resources.into_iter().map(|resource| Endpoint::from(Arc::new(resource)));
    let version = ApiVersion::new(GroupVersion::new(name, "v1"), endpoints);
    Arc::new(ApiGroup::new(name, priority, origin, [version]))
}

/// Namespaces and old-fashioned things that cannot be watched in core, widgets and reviews in a group, and custom
/// gadgets.
pub(crate) fn set() -> ApiSet {
    let core = GroupVersion::new("", "v1");
    let mut namespaces = stored(&core, "namespaces", "Namespace", false, Plain);
    namespaces.verbs.retain(|verb| *verb != Verb::DeleteCollection);
    namespaces.subresources =
        vec![below("finalize", core.with_kind("Namespace"), &[Verb::Update], SubresourceKind::Part)];
    let mut olds = stored(&core, "olds", "Old", false, Plain);
    olds.verbs = vec![Verb::Get, Verb::List];
    let warning = "v1 Old is deprecated in v1.19+".to_owned();
    olds.deprecation = Some(Deprecation { warning, removed_release: "1.40".to_owned() });
    let example = GroupVersion::new("example.com", "v1");
    let reviews = virtual_only(&example, "reviews", "Review", false);
    let local = virtual_only(&example, "localreviews", "LocalReview", true);
    let mut gadgets = stored(&GroupVersion::new("custom.io", "v1"), "gadgets", "Gadget", true, Plain);
    gadgets.order = ListOrder::Sorted;
    ApiSet::new([
        group("", 18000, Origin::BuiltIn, vec![namespaces, olds]),
        group("example.com", 17000, Origin::BuiltIn, vec![widgets(&example), reviews, local]),
        group("custom.io", 1000, Origin::Custom, vec![gadgets]),
    ])
}
