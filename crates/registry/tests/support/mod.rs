//! A registry on a real store, with a kind made for the tests.

use std::{collections::BTreeMap, sync::Arc};

use concord_codec::{FieldValidation, ListOrder, MediaType, PatchType};
use concord_merge::{
    apply::{ResetFields, Time},
    fields::{FieldSet, Path},
    strategic::PatchStrategy,
};
use concord_meta::{
    GroupResource, GroupVersion, Status, UserInfo,
    options::{DeleteOptions, ListOptions, Query, ReadAt},
};
use concord_registry::{
    Backing, Body, Context, DeleteOutcome, Item, ListRequest, Listing, Object, ObjectName, Part,
    PatchRequest, Registry, Renaming, Resource, ResourceNames, Scaling, Storage, Strategy, UpdateRequest,
    Verb, Watch, WatchRequest, Written,
};
use concord_replica::{Config, Replica};
use concord_schema::{Builder, ListType, Presence, Scalar, Schema, TypeId};
use concord_store_embedded::{EmbeddedStore, Options};
use serde_json::{Value, json};

pub(crate) struct Fixture {
    pub(crate) registry: Registry,
    pub(crate) widgets: Arc<Resource>,
    pub(crate) store: Arc<EmbeddedStore>,
    _directory: tempfile::TempDir,
}

/// Widgets have a status that only its own door changes, and a generation.
struct Widgets;

impl Strategy for Widgets {
    fn prepare_for_create(&self, _: &Context, object: &mut Object) {
        object.remove("status");
        concord_registry::metadata_mut(object).insert("generation".to_owned(), 1.into());
    }

    fn prepare_for_update(&self, _: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
        let keep = if part == Part::Main { "status" } else { "spec" };
        match old.get(keep) {
            Some(value) => drop(new.insert(keep.to_owned(), value.clone())),
            None => drop(new.remove(keep)),
        }
        if new.get("spec") != old.get("spec") {
            let next = concord_registry::metadata(old).generation() + 1;
            concord_registry::metadata_mut(new).insert("generation".to_owned(), next.into());
        }
    }

    fn reset_fields(&self, part: Part<'_>) -> ResetFields {
        let reset = if part == Part::Main { "status" } else { "spec" };
        let fields: FieldSet = [Path::of_fields([reset])].into_iter().collect();
        ResetFields::none().excluding("example.com/v1", fields)
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
    let texts = ["name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"];
    let mut meta = types.structure("v1.ObjectMeta");
    for name in texts {
        meta = meta.field(name, string, Presence::NonZero);
    }
    meta.field("labels", strings, Presence::NonZero)
        .field("annotations", strings, Presence::NonZero)
        .field("finalizers", set, Presence::NonZero)
        .patch(PatchStrategy::Merge, None)
        .field("creationTimestamp", time, Presence::NonZero)
        .field("deletionTimestamp", time, Presence::NonZero)
        .field("deletionGracePeriodSeconds", int, Presence::Given)
        .field("generation", int, Presence::NonZero)
        .field("ownerReferences", list, Presence::NonZero)
        .field("managedFields", list, Presence::NonZero)
        .add()
}

/// A kind with a spec of a number, a text and a list of ports by name, and a status of a number.
fn widget_schema() -> Schema {
    let mut types = Builder::new();
    let string = types.scalar("string", Scalar::String);
    let int = types.scalar("int32", Scalar::Int32);
    let port = types
        .structure("v1.Port")
        .field("name", string, Presence::Always)
        .field("port", int, Presence::NonZero)
        .add();
    let ports = types.list("[]v1.Port", port, ListType::Map(["name".to_owned()].into()));
    let spec = types
        .structure("v1.WidgetSpec")
        .field("replicas", int, Presence::NonZero)
        .field("text", string, Presence::NonZero)
        .field("ports", ports, Presence::NonZero)
        .patch(PatchStrategy::Merge, Some("name"))
        .add();
    let status = types.structure("v1.WidgetStatus").field("replicas", int, Presence::NonZero).add();
    let meta = object_meta(&mut types);
    let widget = types
        .structure("v1.Widget")
        .field("kind", string, Presence::NonZero)
        .field("apiVersion", string, Presence::NonZero)
        .field("metadata", meta, Presence::Always)
        .field("spec", spec, Presence::Always)
        .field("status", status, Presence::NonZero)
        .add();
    Schema::new(types.finish().place(widget))
}

fn scaling() -> Scaling {
    let mut types = Builder::new();
    let string = types.scalar("string", Scalar::String);
    let int = types.scalar("int32", Scalar::Int32);
    let spec = types.structure("v1.ScaleSpec").field("replicas", int, Presence::NonZero).add();
    let status = types
        .structure("v1.ScaleStatus")
        .field("replicas", int, Presence::Always)
        .field("selector", string, Presence::NonZero)
        .add();
    let meta = object_meta(&mut types);
    let scale = types
        .structure("v1.Scale")
        .field("kind", string, Presence::NonZero)
        .field("apiVersion", string, Presence::NonZero)
        .field("metadata", meta, Presence::Always)
        .field("spec", spec, Presence::NonZero)
        .field("status", status, Presence::NonZero)
        .add();
    let path = |names: [&str; 2]| names.iter().map(|name| (*name).to_owned()).collect();
    Scaling {
        spec_replicas: path(["spec", "replicas"]),
        status_replicas: path(["status", "replicas"]),
        selector: None,
        schema: Arc::new(Schema::new(types.finish().place(scale))),
    }
}

fn widgets() -> Resource {
    let version = GroupVersion::new("example.com", "v1");
    let storage = Storage {
        resource: GroupResource::new("example.com", "widgets"),
        kind: "Widget".to_owned(),
        version: version.clone(),
        encoding: version.clone(),
        namespaced: true,
        prefix: "/registry/example.com/widgets/".into(),
        strategy: Arc::new(Widgets),
        converter: Arc::new(Renaming),
        forms: BTreeMap::from([("example.com/v1".to_owned(), Arc::new(widget_schema()).into())]),
        formed_since: 0,
        lifetime: None,
    };
    let names = ResourceNames {
        plural: "widgets".to_owned(),
        singular: "widget".to_owned(),
        kind: "Widget".to_owned(),
        list_kind: "WidgetList".to_owned(),
        ..ResourceNames::default()
    };
    let mut resource = Resource::new(version, names, Backing::Stored(Arc::new(storage)), Verb::ALL.to_vec());
    resource.order = ListOrder::Typed;
    resource
}

pub(crate) fn context(manager: &str) -> Context {
    let user = UserInfo { name: "tester".to_owned(), ..UserInfo::default() };
    let mut context = Context::new(user, Time { unix: 1_700_000_000 });
    manager.clone_into(&mut context.manager);
    context
}

pub(crate) fn named(name: &str) -> ObjectName<'_> {
    ObjectName { namespace: "ns", name }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db")));
        let store = Arc::new(store.expect("a store"));
        let replica = Arc::new(Replica::start(store.clone(), Config::default(), Vec::new()));
        replica.consistent(std::time::Duration::from_secs(10)).await.expect("loads");
        let registry = Registry::new(store.clone(), replica, Vec::new());
        Self { registry, widgets: Arc::new(widgets()), store, _directory: directory }
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        self.widgets.storage().expect("stored")
    }

    pub(crate) fn decode(&self, body: &Value) -> Result<Object, Status> {
        let bytes = body.to_string();
        let body = Body {
            bytes: bytes.as_bytes(),
            media_type: MediaType::Json,
            validation: FieldValidation::Strict,
        };
        self.widgets.decode(body, &context("test"))
    }

    pub(crate) async fn create(&self, body: Value) -> Result<Value, Status> {
        let object = self.decode(&body)?;
        let item = self.registry.create(&context("test"), &self.widgets, "ns", object).await?;
        self.show(&item)
    }

    pub(crate) async fn update(&self, part: Part<'_>, body: Value) -> Result<Value, Status> {
        let object = self.decode(&body)?;
        let name = body["metadata"]["name"].as_str().expect("a name").to_owned();
        let request = UpdateRequest { name: named(&name), part, object };
        let written = self.registry.update(&context("test"), &self.widgets, request).await?;
        self.show(&written.item)
    }

    pub(crate) async fn patch(
        &self,
        name: &str,
        patch_type: PatchType,
        body: &Value,
    ) -> Result<Written, Status> {
        let body = body.to_string();
        let request = PatchRequest {
            name: named(name),
            part: Part::Main,
            patch_type,
            body: body.as_bytes(),
            force: false,
            validation: FieldValidation::Strict,
        };
        self.registry.patch(&context("patcher"), &self.widgets, request).await
    }

    pub(crate) async fn apply(&self, manager: &str, force: bool, config: &Value) -> Result<Value, Status> {
        let body = config.to_string();
        let name = config["metadata"]["name"].as_str().expect("a name").to_owned();
        let request = PatchRequest {
            name: named(&name),
            part: Part::Main,
            patch_type: PatchType::Apply,
            body: body.as_bytes(),
            force,
            validation: FieldValidation::Strict,
        };
        let written = self.registry.patch(&context(manager), &self.widgets, request).await?;
        self.show(&written.item)
    }

    pub(crate) async fn get(&self, name: &str) -> Result<Value, Status> {
        let item = self.registry.get(self.storage(), named(name), ReadAt::MostRecent).await?;
        self.show(&item)
    }

    pub(crate) async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<DeleteOutcome, Status> {
        self.registry.delete(&context("test"), &self.widgets, named(name), options).await
    }

    pub(crate) async fn list(&self, query: &[(&str, &str)]) -> Result<Listing, Status> {
        let options = ListOptions::from_query(Query(query))?;
        let request = ListRequest { namespace: Some("ns"), options: &options };
        self.registry.list(self.storage(), request).await
    }

    pub(crate) async fn watch(&self, query: &[(&str, &str)]) -> Watch {
        let mut query = query.to_vec();
        query.push(("watch", "1"));
        let options = ListOptions::from_query(Query(&query)).expect("good options");
        let request = WatchRequest { namespace: Some("ns"), options: &options };
        self.registry.watch(self.storage(), request).await.expect("good selectors").expect("starts")
    }

    pub(crate) fn show(&self, item: &Item) -> Result<Value, Status> {
        Ok(Value::Object(self.widgets.object(item)?))
    }

    pub(crate) fn scaling(&self) -> Scaling {
        scaling()
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is given literals")]
pub(crate) fn widget(name: &str, spec: Value) -> Value {
    json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a revision")
}
