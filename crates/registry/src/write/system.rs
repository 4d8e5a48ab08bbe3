//! The metadata that the server sets.

use concord_merge::apply::Time;
use concord_meta::{Status, names, objectmeta};
use rand::RngExt as _;
use serde_json::Value;
use uuid::Uuid;

use crate::{Context, Object, Resource, metadata, metadata_mut, object::set};

/// What generated names end in: no vowels, so that no words come out, and nothing that looks like something else.
const NAME_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Refuses or drops what only the server sets. A resource version is refused where the object would be stored.
pub(super) fn begin_create(object: &mut Object, dry_run: bool) -> Result<(), Status> {
    if !dry_run && !metadata(object).resource_version().is_empty() {
        return Err(Status::untyped("resourceVersion should not be set on objects to be created"));
    }
    let metadata = metadata_mut(object);
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "creationTimestamp"] {
        metadata.remove(field);
    }
    Ok(())
}

/// Puts the object into the namespace of the request.
pub(super) fn place(object: &mut Object, resource: &Resource, namespace: &str) -> Result<(), Status> {
    let said = metadata(object).namespace();
    if !resource.namespaced {
        metadata_mut(object).remove("namespace");
        return Ok(());
    }
    if said.is_empty() {
        metadata_mut(object).insert("namespace".to_owned(), namespace.into());
    } else if said != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Drops owners that are named twice, and says so.
pub(super) fn dedup_owners(object: &mut Object, context: &Context, after_admission: bool) {
    let repeated = objectmeta::dedup_owner_references(metadata_mut(object));
    if !repeated.is_empty() {
        context.warn(&objectmeta::duplicate_owner_references_warning(&repeated, after_admission));
    }
}

/// Gives a new object its identity.
pub(super) fn identify(object: &mut Object, now: Time) {
    let uid = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let metadata = metadata_mut(object);
    metadata.insert(
        "uid".to_owned(),
        uid.as_hyphenated().encode_lower(&mut Uuid::encode_buffer()).to_owned().into(),
    );
    metadata.insert("creationTimestamp".to_owned(), now.to_string().into());
}

/// Makes a name of the `generateName`. True if it did: another one can be tried then.
pub(super) fn generate_name(object: &mut Object) -> bool {
    let said = metadata(object);
    let (name, base) = (said.name(), said.text("generateName"));
    if !name.is_empty() || base.is_empty() {
        return false;
    }
    let mut random = rand::rng();
    let suffix: String = (0..names::GENERATED_SUFFIX_BYTES)
        .map(|_| char::from(NAME_CHARACTERS[random.random_range(0..NAME_CHARACTERS.len())]))
        .collect();
    let name = names::generate(base, &suffix);
    metadata_mut(object).insert("name".to_owned(), name.into());
    true
}

/// Gives an object without a name one that no other has.
pub(super) fn invent_name(object: &mut Object) {
    if metadata(object).name().is_empty() {
        let name = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
        metadata_mut(object).insert("name".to_owned(), name.to_string().into());
    }
}

/// Restores what an update cannot change. `old` is the stored object.
pub(super) fn restore(new: &mut Object, old: &Object) {
    let old = metadata(old);
    let keep = |name: &str| old.get(name).cloned();
    let new = metadata_mut(new);
    if new.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty() {
        set(new, "uid", keep("uid"));
    }
    set(new, "creationTimestamp", keep("creationTimestamp"));
    set(new, "deletionTimestamp", keep("deletionTimestamp"));
    new.remove("selfLink");
    if new.get("deletionGracePeriodSeconds").is_none_or(Value::is_null) {
        set(new, "deletionGracePeriodSeconds", keep("deletionGracePeriodSeconds"));
    }
}

/// The generation is the server's: it starts from that of the stored object, and the strategy raises it.
pub(super) fn restore_generation(new: &mut Object, old: &Object) {
    let old = metadata(old).get("generation").cloned();
    set(metadata_mut(new), "generation", old);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(metadata: Value) -> Object {
        Object::from_iter([("metadata".to_owned(), metadata)])
    }

    #[test]
    fn a_generated_name_is_the_base_and_five_characters() {
        let mut generated = object(json!({"generateName": "web-"}));
        assert!(generate_name(&mut generated));
        let name = metadata(&generated).name();
        assert_eq!(name.len(), 9, "{name}");
        assert!(name.starts_with("web-") && name[4..].bytes().all(|byte| NAME_CHARACTERS.contains(&byte)));
        let mut named = object(json!({"generateName": "web-", "name": "mine"}));
        assert!(!generate_name(&mut named));
        assert_eq!(metadata(&named).name(), "mine");
    }

    #[test]
    fn what_only_the_server_sets_is_dropped() {
        let mut new =
            object(json!({"name": "a", "uid": "mine", "deletionTimestamp": "2020-01-01T00:00:00Z"}));
        begin_create(&mut new, false).expect("no resource version");
        assert_eq!(new, object(json!({"name": "a"})));
        let mut old = object(json!({"resourceVersion": "1"}));
        let refused = begin_create(&mut old, false).expect_err("refused");
        assert_eq!((refused.code, refused.reason.as_str()), (500, ""));
        identify(&mut new, Time { unix: 0 });
        let uid = metadata(&new).uid();
        assert!(uid.len() == 36 && uid.as_bytes()[14] == b'4', "{uid}");
        assert_eq!(metadata(&new).text("creationTimestamp"), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn an_update_cannot_change_when_and_what_the_object_is() {
        let old = object(
            json!({"uid": "u", "creationTimestamp": "t", "deletionTimestamp": "d", "deletionGracePeriodSeconds": 0}),
        );
        let mut new = object(json!({"creationTimestamp": "x"}));
        restore(&mut new, &old);
        assert_eq!(new, old);
        let mut other = object(json!({"uid": "v"}));
        restore(&mut other, &old);
        assert_eq!(metadata(&other).uid(), "v", "a wrong uid is refused later, not hidden");
    }
}
