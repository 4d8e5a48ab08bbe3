use std::sync::Arc;

use concord_schema::{Builder, ListType, Presence, Scalar, Schema};

use super::*;

/// A kind like a Deployment.
fn schema() -> Schema {
    let mut types = Builder::new();
    let string = types.scalar("string", Scalar::String);
    let int = types.scalar("int32", Scalar::Int32);
    let either = types.scalar("intstr.IntOrString", Scalar::IntOrString);
    let labels = types.map("map[string]string", string);
    let metadata = types
        .structure("v1.ObjectMeta")
        .field("name", string, Presence::NonZero)
        .field("labels", labels, Presence::NonZero)
        .add();
    let item = types.structure("v1.Container").field("image", string, Presence::NonZero).add();
    let items = types.list("[]v1.Container", item, ListType::Atomic);
    let spec = types
        .structure("v1.Spec")
        .field("replicas", int, Presence::Given)
        .field("surge", either, Presence::Given)
        .field("containers", items, Presence::NonZero)
        .add();
    let root = types.structure("v1.Deployment").field("metadata", metadata, Presence::Always);
    let root = root.field("spec", spec, Presence::Always).add();
    Schema::new(types.finish().place(root))
}

fn warnings(kind: &str, env: Env, source: &str) -> Option<String> {
    let kind = GroupVersionKind { group: "apps".into(), version: "v1".into(), kind: kind.into() };
    Environment { kind, env }.warning(source)
}

fn checked(source: &str) -> Option<String> {
    let decl = Arc::new(decl::of(schema().place(), "Deployment").expect("can be seen"));
    let env = environment(Optional::default()).variable("object", decl.clone()).variable("oldObject", decl);
    warnings("Deployment", env, source)
}

#[test]
fn what_fits_is_not_told() {
    for source in [
        "object.spec.replicas > 1",
        "object.spec.surge == 1 || object.spec.surge == '25%'",
        "object.spec.containers.all(c, c.image.startsWith('a'))",
        "object.metadata.labels['a'] == 'b'",
        "has(oldObject.spec.replicas)",
        // Whether it can be evaluated is another question.
        "int('a') == 1",
    ] {
        assert_eq!(checked(source), None, "{source}");
    }
}

#[test]
fn what_does_not_fit_is_told_for_the_kind() {
    assert_eq!(
        checked("object.foo > 1").as_deref(),
        Some(
            "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'foo'\n | object.foo > 1\n | ......^\n"
        )
    );
    let told = checked("object.spec.replicas > 'x'").expect("a number is no text");
    assert!(told.contains("found no matching overload for '_>_' applied to '(int, string)'"), "{told}");
}
