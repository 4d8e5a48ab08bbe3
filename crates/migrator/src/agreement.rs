//! What the servers say about how they write.

use concord_fleet::Fleet;
use concord_meta::GroupResource;
use concord_registry::Storage;
use concord_store::Revision;
use concord_store_sealed::Keyring;

use crate::Row;

/// Whether all servers write a resource in one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writers {
    /// They do.
    Agree(Agreed),
    /// They do not, and why.
    Disagree(String),
}

/// What they agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The form in which all of them write.
    pub target: Row,
    /// A number for who says so.
    pub fingerprint: u64,
    /// Since when, without a gap.
    pub since: Revision,
    /// When that was seen.
    pub revision: Revision,
    /// Whether others were asked at all: if versions are not registered, only this server is known.
    pub is_known: bool,
}

/// What is said about the objects of a storage. Everything up to revision `seen` has reached this server.
pub(crate) fn writers(
    fleet: Option<&Fleet>,
    keyring: Option<&Keyring>,
    storage: &Storage,
    seen: Revision,
) -> Writers {
    // Where versions are not registered a server decides for itself, but for nobody else: if there are others, they do not
    // agree.
    let Some(fleet) = fleet.filter(|fleet| fleet.registers_versions() || !fleet.is_alone()) else {
        let GroupResource { group, resource } = &storage.resource;
        let encryption = keyring.map(|keyring| keyring.seals_with(group, resource)).unwrap_or_default();
        let target = Row { version: storage.encoding.to_string(), encryption };
        // Nobody else is known: what this server does counts, from the beginning and for ever.
        return Writers::Agree(Agreed { target, fingerprint: 0, since: 0, revision: seen, is_known: false });
    };
    match fleet.agreement_below(&storage.prefix) {
        Err(disagreement) => Writers::Disagree(disagreement.to_string()),
        Ok(agreed) if agreed.agreement.version != storage.encoding.to_string() => {
            Writers::Disagree(format!("this server does not serve {} yet", agreed.agreement.version))
        }
        Ok(agreed) => Writers::Agree(Agreed {
            target: Row { version: agreed.agreement.version, encryption: agreed.agreement.seals_with },
            fingerprint: agreed.agreement.fingerprint,
            since: agreed.since,
            revision: seen,
            is_known: true,
        }),
    }
}
