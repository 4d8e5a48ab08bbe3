use crate::{Fence, Found, Holds};

/// Why a server may not write an object now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// It has no identity lease: it never had one, or lost it.
    NoIdentity,
    /// Its entry for the resource is missing.
    Unregistered,
    /// Its entry says another version.
    OtherVersion(String),
}

/// Whether the server may write an object of a resource in a version: if so, what the transaction of the write has to
/// compare. `found` is the StorageVersion `name` of the resource.
///
/// # Errors
///
/// Why not.
pub fn gate(
    held: Option<&Fence>,
    name: &str,
    found: Option<&Found<'_>>,
    encoding: &str,
) -> Result<[Holds; 2], Closed> {
    let Some(fence @ Fence::Held { id, .. }) = held else { return Err(Closed::NoIdentity) };
    let Some(found) = found else { return Err(Closed::Unregistered) };
    let own = found.entries.iter().find(|entry| entry.api_server_id == *id);
    let Some(own) = own else { return Err(Closed::Unregistered) };
    if own.encoding_version != encoding {
        return Err(Closed::OtherVersion(own.encoding_version.clone()));
    }
    Ok([fence.holds(), Found::unchanged(Some(found), name)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    #[test]
    fn only_the_holder_of_the_lease_writes_and_only_what_it_said() {
        let held = Fence::Held { id: "a".to_owned(), since: 3 };
        let acquiring = Fence::Acquiring { id: "a".to_owned() };
        let says = |id: &str, version: &str| Entry {
            api_server_id: id.to_owned(),
            encoding_version: version.to_owned(),
            ..Entry::default()
        };
        let both = [says("b", "v1"), says("a", "v2")];
        let found = Found { revision: 9, entries: &both };
        let other = Found { revision: 9, entries: &both[..1] };
        let ask = |held: Option<&Fence>, found: Option<&Found<'_>>, version: &str| {
            gate(held, "core.x", found, version)
        };
        let open = [Holds::LeaseSince("a".to_owned(), 3), Holds::StorageVersionAt("core.x".to_owned(), 9)];
        assert_eq!(ask(Some(&held), Some(&found), "v2"), Ok(open));
        assert_eq!(ask(Some(&held), Some(&found), "v1"), Err(Closed::OtherVersion("v2".to_owned())));
        assert_eq!(ask(Some(&held), Some(&other), "v1"), Err(Closed::Unregistered));
        assert_eq!(ask(Some(&held), None, "v1"), Err(Closed::Unregistered));
        assert_eq!(ask(None, Some(&found), "v2"), Err(Closed::NoIdentity));
        assert_eq!(ask(Some(&acquiring), Some(&found), "v2"), Err(Closed::NoIdentity));
    }
}
