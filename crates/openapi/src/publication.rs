//! The documents about one set of APIs.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use concord_endpoints::{ApiGroup, ApiSet, ApiVersion, Endpoint, Origin};
use concord_meta::GroupVersion;
use concord_registry::Form;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::JoinError,
};

use crate::{
    annotations::Annotations,
    components::{Definitions, Kinds, Sources},
    document::{Service, Subject, VERSION},
    everything::{Everything, Kept},
    extensions::{ExtensionDocument, ExtensionDocuments},
    leaf::{About, Document},
    names,
    packed::{Packed, Recent},
};

/// What documents are made from, whatever the set.
pub(crate) struct Context {
    pub(crate) release: String,
    pub(crate) annotations: Annotations,
    pub(crate) definitions: Box<Definitions>,
    pub(crate) services: Vec<&'static Service>,
    /// What was made to know its hash, and may be asked for next.
    pub(crate) recent: Recent,
    /// Who makes something about all documents: one at a time, however fast they change.
    pub(crate) whole: Arc<Semaphore>,
    /// Of what the document of version 2 consists.
    pub(crate) kept: Kept,
}

/// Some bytes and their hash.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) bytes: Bytes,
    pub(crate) packed: Packed,
    pub(crate) hash: Arc<str>,
}

/// Everything that is published about a set.
pub(crate) struct Publication {
    set: Arc<ApiSet>,
    extensions: Arc<ExtensionDocuments>,
    context: Arc<Context>,
    leaves: BTreeMap<String, Arc<Document>>,
    /// The document of version 2.
    everything: OnceCell<Arc<Everything>>,
    /// Which do not change with custom resources.
    kinds: Arc<OnceLock<Kinds>>,
    index: OnceCell<Published>,
}

impl Publication {
    /// What is published about a set and what others serve. Documents about what `before` has, too, are taken from there.
    pub(crate) fn new(
        set: Arc<ApiSet>,
        extensions: Arc<ExtensionDocuments>,
        context: Arc<Context>,
        before: Option<&Self>,
    ) -> Self {
        let keep = |(key, about): (String, About)| {
            let known = before.and_then(|before| before.leaves.get(&key));
            let leaf = match known {
                Some(known) if known.is_about(&about) => known.clone(),
                _ => Arc::new(Document::new(about, known.map(Arc::as_ref))),
            };
            (key, leaf)
        };
        let own =
            subjects(&set, &context).into_iter().map(|subject| (subject.key(), About::Subject(subject)));
        let others = others(&set, &extensions);
        let same =
            before.filter(|before| typed(&before.set).map(Arc::as_ptr).eq(typed(&set).map(Arc::as_ptr)));
        Self {
            leaves: own.chain(others).collect::<BTreeMap<_, _>>().into_iter().map(keep).collect(),
            everything: OnceCell::new(),
            kinds: same.map(|before| before.kinds.clone()).unwrap_or_default(),
            index: OnceCell::new(),
            set,
            extensions,
            context,
        }
    }

    /// Whether this is about that set and these documents.
    pub(crate) fn is_of(&self, set: &Arc<ApiSet>, extensions: &Arc<ExtensionDocuments>) -> bool {
        Arc::ptr_eq(&self.set, set) && Arc::ptr_eq(&self.extensions, extensions)
    }

    /// The document of a path, such as `apis/apps/v1`.
    pub(crate) fn leaf(&self, key: &str) -> Option<&Arc<Document>> {
        self.leaves.get(key)
    }

    /// The document of version 2, if it has been put together.
    pub(crate) fn known_everything(&self) -> Option<&Arc<Everything>> {
        self.everything.get()
    }

    /// The document of version 2.
    ///
    /// # Errors
    ///
    /// When making it ended in an unexpected way.
    pub(crate) async fn everything(self: &Arc<Self>) -> Result<&Arc<Everything>, JoinError> {
        let make = async || {
            let publication = Arc::clone(self);
            tokio::task::spawn_blocking(move || Arc::new(Everything::new(&publication))).await
        };
        self.everything.get_or_try_init(make).await
    }

    /// The index, if it has been made.
    pub(crate) fn known_index(&self) -> Option<Published> {
        self.index.get().cloned()
    }

    /// The index: which documents there are, and their hashes.
    ///
    /// # Errors
    ///
    /// When making it ended in an unexpected way.
    pub(crate) async fn index(self: &Arc<Self>) -> Result<Published, JoinError> {
        let make = async || {
            let publication = Arc::clone(self);
            tokio::task::spawn_blocking(move || publication.make_index()).await
        };
        self.index.get_or_try_init(make).await.cloned()
    }

    fn make_index(&self) -> Published {
        let unknown = self.leaves.values().any(|leaf| leaf.known_hash().is_none() && !leaf.is_custom());
        // Those about what is built in are made one after the other, from texts that are unpacked once.
        let _texts = unknown.then(|| self.context.annotations.texts());
        let entry = |(key, leaf): (&String, &Arc<Document>)| {
            (key.clone(), json!({"serverRelativeURL": url(key, &leaf.hash(self))}))
        };
        let paths: BTreeMap<String, Value> = self.leaves.iter().map(entry).collect();
        let bytes = to_json(&json!({"paths": paths}));
        let hash = hash(&bytes);
        Published { hash, packed: Packed::new(&bytes), bytes: bytes.into() }
    }

    /// What documents are made from: with all texts, or with those that custom resources need.
    pub(crate) fn sources(&self, custom: bool) -> Sources<'_> {
        let Context { annotations, definitions, .. } = &*self.context;
        let common = annotations.common();
        let texts = if custom { common.texts.clone() } else { annotations.texts() };
        Sources { kinds: self.kinds(), names: &common.names, texts, definitions: &**definitions }
    }

    /// The version of the API as a whole.
    pub(crate) fn release(&self) -> &str {
        &self.context.release
    }

    /// Of what the document of version 2 consists.
    pub(crate) fn kept(&self) -> &Kept {
        &self.context.kept
    }

    /// What was made a moment ago.
    pub(crate) fn recent(&self) -> &Recent {
        &self.context.recent
    }

    /// The documents of other servers, in their order.
    pub(crate) fn extensions(&self) -> impl Iterator<Item = &ExtensionDocument> {
        let is_told =
            |document: &&Arc<ExtensionDocument>| self.leaves.values().any(|leaf| leaf.is_of(document));
        self.extensions.0.iter().map(|(_, document)| document).filter(is_told).map(Arc::as_ref)
    }

    /// All documents but that of version 2.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Arc<Document>> + Clone {
        self.leaves.values()
    }

    fn kinds(&self) -> &Kinds {
        let of = |group: &Arc<ApiGroup>| {
            let endpoints = group.versions().iter().flat_map(ApiVersion::resources);
            endpoints.map(|endpoint| endpoint.resource.clone()).collect::<Vec<_>>()
        };
        self.kinds.get_or_init(|| Kinds::new(&typed(&self.set).flat_map(of).collect::<Vec<_>>()))
    }
}

/// What there are documents about.
fn subjects(set: &ApiSet, context: &Context) -> Vec<Subject> {
    let services = context.services.iter().copied().chain([&VERSION]).map(Subject::Service);
    let mut subjects: Vec<Subject> = services.chain([Subject::Groups]).collect();
    for group in set.groups() {
        for version in group.versions() {
            let resources = version.resources().iter().map(|endpoint| endpoint.resource.clone()).collect();
            subjects.push(Subject::Version(version.version().clone(), resources));
        }
        if group.origin() == Origin::BuiltIn {
            subjects.push(Subject::Group(group.name().to_owned()));
        }
    }
    subjects
}

/// The groups whose types are the program's own, which definitions neither add nor change.
fn typed(set: &ApiSet) -> impl Iterator<Item = &Arc<ApiGroup>> {
    let is_typed = |endpoint: &Endpoint| !matches!(endpoint.resource.form(), Some(Form::Custom(_)));
    let endpoints =
        move |group: &&Arc<ApiGroup>| group.versions().iter().flat_map(ApiVersion::resources).any(is_typed);
    set.groups().iter().filter(endpoints)
}

/// The documents of other servers, by their keys. What is built in is this server's to tell about; over custom resources
/// others win, as in requests.
fn others(set: &ApiSet, extensions: &ExtensionDocuments) -> Vec<(String, About)> {
    let is_built_in = |of: &GroupVersion| {
        let group = set.group(&of.group).filter(|group| group.origin() == Origin::BuiltIn);
        group.is_some_and(|group| group.version(&of.version).is_some())
    };
    let others = extensions.0.iter().filter(|(of, _)| !is_built_in(of));
    let key = |of: &GroupVersion| names::root(of).trim_start_matches('/').to_owned();
    others.map(|(of, document)| (key(of), About::Extension(document.clone()))).collect()
}

/// Where the document of this key and hash is.
pub(crate) fn url(key: &str, hash: &str) -> String {
    format!("/openapi/v3/{key}?hash={hash}")
}

/// Why writing cannot fail.
const SAYABLE: &str = "documents have nothing that JSON cannot say";

pub(crate) fn to_json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect(SAYABLE)
}

/// Upstream's hash: SHA-512 in capital letters.
pub(crate) fn hash(bytes: &[u8]) -> Arc<str> {
    hexadecimal(digest(&SHA512, bytes).as_ref())
}

pub(crate) fn hexadecimal(hash: &[u8]) -> Arc<str> {
    let digits: String = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    digits.into()
}

#[cfg(test)]
mod tests;
