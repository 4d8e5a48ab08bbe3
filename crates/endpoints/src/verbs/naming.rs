//! Whether an object is the one that the path names.

use concord_meta::Status;
use concord_registry::{Object, ObjectName, metadata, metadata_mut};

/// Puts an object into the namespace of the request.
///
/// # Errors
///
/// 400 when it says that it is in another one.
pub(super) fn place(object: &mut Object, namespace: &str) -> Result<(), Status> {
    let said = metadata(object).namespace();
    match (said, namespace) {
        (said, namespace) if said == namespace => {}
        (_, "") => drop(metadata_mut(object).remove("namespace")),
        ("", namespace) => drop(metadata_mut(object).insert("namespace".to_owned(), namespace.into())),
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

/// [`place`], for an object whose name must be that of the path.
///
/// # Errors
///
/// 400 when it is another one.
pub(super) fn place_named(object: &mut Object, at: ObjectName<'_>) -> Result<(), Status> {
    place(object, at.namespace)?;
    let (said, name) = (metadata(object).name(), at.name);
    match said {
        said if said == name => Ok(()),
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        said => Err(Status::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, namespace: &str) -> Object {
        let object = json!({"metadata": {"name": name, "namespace": namespace}});
        object.as_object().expect("an object").clone()
    }

    #[test]
    fn objects_are_in_the_namespace_of_the_request() {
        let placed = |said: &str, namespace: &str| {
            let mut object = object("x", said);
            place(&mut object, namespace).map(|()| metadata(&object).namespace().to_owned())
        };
        assert_eq!(placed("", "a"), Ok("a".to_owned()));
        assert_eq!(placed("a", "a"), Ok("a".to_owned()));
        assert_eq!(placed("a", ""), Ok(String::new()));
        assert_eq!(placed("b", "a").map_err(|status| status.code), Err(400));
    }

    #[test]
    fn the_namespace_is_looked_at_before_the_name() {
        let at = ObjectName { namespace: "ns", name: "x" };
        for (name, namespace, problem) in [
            ("x", "ns", ""),
            ("x", "", ""),
            ("y", "ns", "the name of the object (y) does not match the name on the URL (x)"),
            ("", "ns", "the name of the object (x based on URL) was undeterminable: name must be provided"),
            (
                "y",
                "y",
                "the namespace of the provided object does not match the namespace sent on the request",
            ),
        ] {
            let found = place_named(&mut object(name, namespace), at);
            assert_eq!(found.map_or_else(|status| status.message, |()| String::new()), problem);
        }
    }
}
