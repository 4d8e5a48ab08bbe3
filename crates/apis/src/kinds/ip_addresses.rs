use concord_registry::{Object, metadata, metadata_mut};

use super::Hooks;

pub(super) const HOOKS: Hooks = Hooks { default: Some(name), ..Hooks::NONE };

/// Nothing can be added to an address: one that a name is to be generated from is the name.
fn name(object: &mut Object) {
    let prefix = metadata(object).text("generateName").to_owned();
    if metadata(object).name().is_empty() && !prefix.is_empty() {
        metadata_mut(object).insert("name".to_owned(), prefix.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_that_is_generated_from_an_address_is_the_address() {
        for (said, name) in [
            (json!({"generateName": "10.0.0.1"}), "10.0.0.1"),
            (json!({"generateName": "10.0.0.1", "name": "10.0.0.2"}), "10.0.0.2"),
            (json!({}), ""),
        ] {
            let mut address = Object::from_iter([("metadata".to_owned(), said)]);
            super::name(&mut address);
            assert_eq!(metadata(&address).name(), name);
        }
    }
}
