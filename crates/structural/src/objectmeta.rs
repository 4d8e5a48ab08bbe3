//! The type of `metadata`, which no schema has to describe.

use std::sync::LazyLock;

use concord_merge::strategic::PatchStrategy;
use concord_schema::{Builder, ListType, Place, Presence, Scalar, Schema, TypeId};

use Presence::{Always, Given, NonZero};

static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
    let mut types = Builder::new();
    let meta = describe(&mut types);
    Schema::new(types.finish().place(meta)).keeping_empty_lists()
});

/// The type of the metadata of every object.
#[must_use]
pub fn object_meta() -> &'static Schema {
    &OBJECT_META
}

/// A text, for server-side apply.
pub(crate) fn string_place() -> Place {
    static STRING: LazyLock<Place> = LazyLock::new(|| {
        let mut types = Builder::new();
        let string = types.scalar("string", Scalar::String);
        types.finish().place(string)
    });
    STRING.clone()
}

fn describe(types: &mut Builder) -> TypeId {
    let string = types.scalar("string", Scalar::String);
    let uid = types.scalar("types.UID", Scalar::String);
    let int64 = types.scalar("int64", Scalar::Int64);
    let time = types.scalar("v1.Time", Scalar::Time);
    let texts = types.map("map[string]string", string);
    let finalizers = types.list("[]string", string, ListType::Set);
    let owners = owner_references(types, string, uid);
    let managed = managed_fields(types, string, time);
    types
        .structure("v1.ObjectMeta")
        .field("name", string, NonZero)
        .field("generateName", string, NonZero)
        .field("namespace", string, NonZero)
        .field("selfLink", string, NonZero)
        .field("uid", uid, NonZero)
        .field("resourceVersion", string, NonZero)
        .field("generation", int64, NonZero)
        .field("creationTimestamp", time, NonZero)
        .field("deletionTimestamp", time, Given)
        .field("deletionGracePeriodSeconds", int64, Given)
        .field("labels", texts, NonZero)
        .field("annotations", texts, NonZero)
        .field("ownerReferences", owners, NonZero)
        .patch(PatchStrategy::Merge, Some("uid"))
        .field("finalizers", finalizers, NonZero)
        .patch(PatchStrategy::Merge, None)
        .field("managedFields", managed, NonZero)
        .add()
}

fn owner_references(types: &mut Builder, string: TypeId, uid: TypeId) -> TypeId {
    let boolean = types.scalar("bool", Scalar::Bool);
    let owner = types
        .structure("v1.OwnerReference")
        .field("apiVersion", string, Always)
        .field("kind", string, Always)
        .field("name", string, Always)
        .field("uid", uid, Always)
        .field("controller", boolean, Given)
        .field("blockOwnerDeletion", boolean, Given)
        .atomic()
        .add();
    types.list("[]v1.OwnerReference", owner, ListType::Map(["uid".to_owned()].into()))
}

fn managed_fields(types: &mut Builder, string: TypeId, time: TypeId) -> TypeId {
    let operation = types.scalar("v1.ManagedFieldsOperationType", Scalar::String);
    let fields = types.scalar("v1.FieldsV1", Scalar::FieldsV1);
    let entry = types
        .structure("v1.ManagedFieldsEntry")
        .field("manager", string, NonZero)
        .field("operation", operation, NonZero)
        .field("apiVersion", string, NonZero)
        .field("time", time, Given)
        .field("fieldsType", string, NonZero)
        .field("fieldsV1", fields, Given)
        .field("subresource", string, NonZero)
        .add();
    types.list("[]v1.ManagedFieldsEntry", entry, ListType::Atomic)
}
