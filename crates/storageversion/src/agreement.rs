//! What whoever rewrites stored objects may rely on.

use std::{collections::BTreeMap, fmt};

use aws_lc_rs::digest::{SHA256, digest};
use concord_store::Revision;

use crate::Entry;

/// All live servers write one version, encrypted with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// That version.
    pub version: String,
    /// That key, in the words of [`crate::Keys`].
    pub seals_with: String,
    /// Changes whenever the object, the set of servers or what one of them says does.
    pub fingerprint: u64,
}

/// Why there is no agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disagreement {
    /// Nobody says anything about the resource.
    Unknown,
    /// Servers write different versions; each with its own, `id=version`.
    Different(Vec<String>),
    /// Servers encrypt with different keys; each with its own, `id=key`.
    Sealed(Vec<String>),
    /// These live servers say nothing: they may write whatever they like.
    Silent(Vec<String>),
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => write!(f, "no server has said how it stores the resource"),
            Self::Different(servers) => {
                write!(f, "servers store different versions: {}", servers.join(", "))
            }
            Self::Sealed(servers) => {
                write!(f, "servers encrypt with different keys: {}", servers.join(", "))
            }
            Self::Silent(servers) => {
                write!(f, "servers have not said how they store the resource: {}", servers.join(", "))
            }
        }
    }
}

/// Whether all live servers write one version of a resource. `entries` are those of its StorageVersion, of which `uid`
/// is the uid; `live` are the identity leases of all servers, by ID, with the revision at which each came to be.
///
/// Upstream counts the entries that exist. A server that has none, since it is older, starting or has the API turned
/// off, is not seen there, and writes.
///
/// # Errors
///
/// Why not.
pub fn agreement(
    uid: &str,
    entries: Option<&[Entry]>,
    live: &BTreeMap<String, Revision>,
) -> Result<Agreement, Disagreement> {
    let entries = entries.filter(|entries| !entries.is_empty()).ok_or(Disagreement::Unknown)?;
    let each = |said: fn(&Entry) -> &str| {
        let servers = entries.iter().map(|entry| format!("{}={}", entry.api_server_id, said(entry)));
        let mut servers: Vec<String> = servers.collect();
        servers.sort();
        servers
    };
    let Some(version) = crate::common_encoding_version(entries) else {
        return Err(Disagreement::Different(each(|entry| &entry.encoding_version)));
    };
    let seals_with = entries[0].keys.seals_with.as_str();
    if entries.iter().any(|entry| entry.keys.seals_with != seals_with) {
        return Err(Disagreement::Sealed(each(|entry| match entry.keys.seals_with.as_str() {
            "" => "identity",
            sealed => sealed,
        })));
    }
    let has_entry = |id: &&String| entries.iter().any(|entry| entry.api_server_id == **id);
    let silent: Vec<String> = live.keys().filter(|id| !has_entry(id)).cloned().collect();
    if !silent.is_empty() {
        return Err(Disagreement::Silent(silent));
    }
    let fingerprint = fingerprint(uid, entries, live);
    Ok(Agreement { version: version.to_owned(), seals_with: seals_with.to_owned(), fingerprint })
}

/// A number for who says what about which object, in whichever order they said it.
pub fn fingerprint(uid: &str, entries: &[Entry], live: &BTreeMap<String, Revision>) -> u64 {
    let says: BTreeMap<&str, (&str, &str)> = entries
        .iter()
        .map(|entry| {
            let says = (entry.encoding_version.as_str(), entry.keys.seals_with.as_str());
            (entry.api_server_id.as_str(), says)
        })
        .collect();
    let mut text = format!("{uid}\n");
    for (id, (version, key)) in says {
        text += &format!("{id}={version} {key}\n");
    }
    for id in live.keys() {
        text += &format!("{id}\n");
    }
    let digest = digest(&SHA256, text.as_bytes());
    u64::from_be_bytes(*digest.as_ref().first_chunk().expect("a digest of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    fn says(id: &str, version: &str) -> Entry {
        Entry { api_server_id: id.to_owned(), encoding_version: version.to_owned(), ..Entry::default() }
    }

    fn live(ids: &[&str]) -> BTreeMap<String, Revision> {
        ids.iter().map(|id| ((*id).to_owned(), 1)).collect()
    }

    #[test]
    fn everybody_who_lives_has_to_say_the_same() {
        let (a1, b1, b2) = (says("a", "v1"), says("b", "v1"), says("b", "v2"));
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (entries, servers, outcome) in [
            (None, &["a"][..], Err(Disagreement::Unknown)),
            (Some(vec![]), &["a"], Err(Disagreement::Unknown)),
            (Some(vec![a1.clone(), b1.clone()]), &["a", "b"], Ok("v1".to_owned())),
            (Some(vec![a1.clone(), b2]), &["a", "b"], Err(Disagreement::Different(owned(&["a=v1", "b=v2"])))),
            (Some(vec![a1.clone()]), &["a", "b"], Err(Disagreement::Silent(owned(&["b"])))),
            // The entry of a server that is gone says what may still be stored.
            (Some(vec![a1, b1]), &["a"], Ok("v1".to_owned())),
        ] {
            let agreed = agreement("u", entries.as_deref(), &live(servers)).map(|agreed| agreed.version);
            assert_eq!(agreed, outcome, "{entries:?} {servers:?}");
        }
    }

    #[test]
    fn everybody_who_lives_has_to_use_the_same_key() {
        let sealed = |id: &str, key: &str| {
            let keys = Keys { seals_with: key.to_owned(), ..Keys::default() };
            Entry { keys, ..says(id, "v1") }
        };
        let servers = live(&["a", "b"]);
        let of = |entries: &[Entry]| agreement("u", Some(entries), &servers);
        let one = of(&[sealed("a", "k1"), sealed("b", "k1")]).expect("agreed");
        assert_eq!(one.seals_with, "k1");
        let refused = of(&[sealed("b", "k2"), sealed("a", "")]).expect_err("different keys");
        assert_eq!(refused.to_string(), "servers encrypt with different keys: a=identity, b=k2");
        let other = of(&[sealed("a", "k2"), sealed("b", "k2")]).expect("agreed");
        assert_ne!(one.fingerprint, other.fingerprint);
    }

    #[test]
    fn the_fingerprint_sees_every_change_and_no_order() {
        let (a, b, b2) = (says("a", "v1"), says("b", "v1"), says("b", "v2"));
        let of = |uid: &str, entries: &[Entry], ids: &[&str]| fingerprint(uid, entries, &live(ids));
        let first = of("u", &[a.clone(), b.clone()], &["a", "b"]);
        assert_eq!(first, of("u", &[b.clone(), a.clone()], &["b", "a"]));
        for other in [
            of("w", &[a.clone(), b.clone()], &["a", "b"]),
            of("u", &[a.clone(), b2], &["a", "b"]),
            of("u", std::slice::from_ref(&a), &["a", "b"]),
            of("u", &[a, b], &["a"]),
        ] {
            assert_ne!(first, other);
        }
    }
}
