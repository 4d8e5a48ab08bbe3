use crate::{Entry, Fence, Found, Holds, Record, Step};

/// Where a server is with a resource. A flip of the stored version goes from `Stable` in one version over `Unpublished`
/// to `Stable` in another.
///
/// | phase | reads | writes |
/// |---|---|---|
/// | `Stable` | served | served, each compares the StorageVersion it was decided on |
/// | `Unpublished` | served | those in the version to come wait; those in the version before may still commit, until the publication, which ends them all at once |
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Its entry is as it should be.
    Stable,
    /// Its entry has to be written: it says another version, or nothing yet.
    Unpublished {
        /// The version that the entry says until then.
        from: Option<String>,
    },
}

/// What a server is to publish about a resource.
fn wanted(id: &str, record: &Record) -> Entry {
    Entry {
        api_server_id: id.to_owned(),
        encoding_version: record.encoding.clone(),
        decodable_versions: record.decodable.clone(),
        served_versions: record.served.clone(),
        keys: record.keys.clone(),
    }
}

/// Where the server `id` is with a resource whose StorageVersion was found like this.
pub fn phase(id: &str, found: Option<&Found<'_>>, record: &Record) -> Phase {
    let own = found.and_then(|found| found.entries.iter().find(|entry| entry.api_server_id == id));
    match own {
        Some(own) if *own == wanted(id, record) => Phase::Stable,
        own => Phase::Unpublished { from: own.map(|own| own.encoding_version.clone()) },
    }
}

/// What a server does so that its entry for a resource is there and true; `None` if it is.
///
/// Entries of others are left as they are. For a custom resource the definition must still be the one that was read:
/// what is published is always what the newest definition says.
pub fn registration(fence: &Fence, found: Option<&Found<'_>>, record: &Record) -> Option<Step> {
    let id = fence.id();
    if phase(id, found, record) == Phase::Stable {
        return None;
    }
    let before = found.map(|found| found.entries).unwrap_or_default();
    let at = before.iter().position(|entry| entry.api_server_id == id);
    // All entries of this ID go, in case somebody wrote it twice.
    let mut entries: Vec<Entry> = before.iter().filter(|entry| entry.api_server_id != id).cloned().collect();
    entries.insert(at.unwrap_or(entries.len()), wanted(id, record));
    let name = record.name();
    let mut holds = vec![fence.holds(), Found::unchanged(found, &name)];
    holds.extend(record.owner.as_ref().map(|owner| Holds::DefinitionAt(owner.name.clone(), owner.revision)));
    Some(Step { name, holds, entries: Some(entries) })
}

/// Those of the others who say that they cannot read a version. Whoever begins to write it should know: what it stores is
/// lost to them. That is an upgrade in the wrong order, which is not for a server to forbid.
pub fn cannot_read<'a>(id: &str, found: Option<&Found<'a>>, version: &str) -> Vec<&'a str> {
    let others = found.into_iter().flat_map(|found| found.entries).filter(|entry| entry.api_server_id != id);
    let blind = others.filter(|entry| !entry.decodable_versions.iter().any(|known| known == version));
    blind.map(|entry| entry.api_server_id.as_str()).collect()
}

/// What a server does about its entry for a resource that it does not store: it takes it away, and the object with it if
/// that was the last one. `None` if it has none.
pub fn withdrawal(fence: &Fence, name: &str, found: &Found<'_>) -> Option<Step> {
    let id = fence.id();
    let entries: Vec<Entry> =
        found.entries.iter().filter(|entry| entry.api_server_id != id).cloned().collect();
    if entries.len() == found.entries.len() {
        return None;
    }
    Some(Step {
        name: name.to_owned(),
        holds: vec![fence.holds(), Found::unchanged(Some(found), name)],
        entries: (!entries.is_empty()).then_some(entries),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Owner;

    fn record(version: &str) -> Record {
        Record {
            resource: "pods".to_owned(),
            encoding: version.to_owned(),
            decodable: vec!["v2".to_owned(), "v1".to_owned()],
            served: vec!["v1".to_owned()],
            ..Record::default()
        }
    }

    fn held() -> Fence {
        Fence::Held { id: "a".to_owned(), since: 5 }
    }

    fn says(id: &str, version: &str) -> Entry {
        wanted(id, &record(version))
    }

    #[test]
    fn an_entry_is_added_replaced_in_place_or_left_alone() {
        let versions = |step: Option<Step>| {
            let entries = step?.entries?;
            Some(
                entries
                    .iter()
                    .map(|entry| format!("{}={}", entry.api_server_id, entry.encoding_version))
                    .collect::<Vec<_>>(),
            )
        };
        let owned = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        for (entries, after) in [
            (vec![], owned(&["a=v1"])),
            (vec![says("b", "v2")], owned(&["b=v2", "a=v1"])),
            (vec![says("a", "v2"), says("b", "v2")], owned(&["a=v1", "b=v2"])),
            (vec![says("a", "v2"), says("b", "v2"), says("a", "v1")], owned(&["a=v1", "b=v2"])),
            (vec![says("b", "v2"), says("a", "v1")], None),
        ] {
            let found = Found { revision: 8, entries: &entries };
            let step = registration(&held(), Some(&found), &record("v1"));
            assert_eq!(versions(step), after, "{entries:?}");
        }
    }

    #[test]
    fn a_registration_holds_on_to_what_it_was_decided_on() {
        let (lease, name) = (Holds::LeaseSince("a".to_owned(), 5), "core.pods".to_owned());
        let step = registration(&held(), None, &record("v1")).expect("something to do");
        assert_eq!(step.holds, [lease.clone(), Holds::StorageVersionAbsent(name.clone())]);
        let owner = Owner { name: "pods".to_owned(), uid: "u".to_owned(), revision: 6 };
        let custom = Record { owner: Some(owner), ..record("v1") };
        let found = Found { revision: 8, entries: &[] };
        let step = registration(&held(), Some(&found), &custom).expect("something to do");
        let unchanged = Holds::StorageVersionAt(name, 8);
        assert_eq!(step.holds, [lease, unchanged, Holds::DefinitionAt("pods".to_owned(), 6)]);
        let acquiring = Fence::Acquiring { id: "a".to_owned() };
        let step = registration(&acquiring, None, &record("v1")).expect("something to do");
        assert_eq!(step.holds[0], Holds::LeaseAbsent("a".to_owned()));
    }

    #[test]
    fn a_flip_goes_from_one_version_to_the_next() {
        let entries = [says("a", "v1")];
        let found = Found { revision: 8, entries: &entries };
        assert_eq!(phase("a", Some(&found), &record("v1")), Phase::Stable);
        let from = Some("v1".to_owned());
        assert_eq!(phase("a", Some(&found), &record("v2")), Phase::Unpublished { from });
        assert_eq!(phase("b", Some(&found), &record("v2")), Phase::Unpublished { from: None });
        let mut more = record("v1");
        more.decodable.push("v3".to_owned());
        assert_ne!(phase("a", Some(&found), &more), Phase::Stable, "what can be read is published too");
    }

    #[test]
    fn who_cannot_read_what_is_to_be_written_is_named() {
        let other = Entry { decodable_versions: vec!["v1".to_owned()], ..says("b", "v1") };
        let entries = [says("a", "v1"), other, says("c", "v1")];
        let found = Found { revision: 8, entries: &entries };
        assert_eq!(cannot_read("a", Some(&found), "v2"), ["b"]);
        assert_eq!(cannot_read("b", Some(&found), "v2"), [""; 0], "what it says itself is about to change");
        assert_eq!(cannot_read("a", Some(&found), "v1"), [""; 0]);
        assert_eq!(cannot_read("a", None, "v2"), [""; 0]);
    }

    #[test]
    fn the_last_entry_takes_the_object_with_it() {
        let entries = [says("a", "v1"), says("b", "v1")];
        let left = |entries: &[Entry]| {
            let found = Found { revision: 8, entries };
            withdrawal(&held(), "core.pods", &found).map(|step| step.entries.map(|entries| entries.len()))
        };
        assert_eq!(left(&entries), Some(Some(1)));
        assert_eq!(left(&entries[..1]), Some(None));
        assert_eq!(left(&entries[1..]), None);
    }
}
