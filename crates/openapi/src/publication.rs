//! The documents about one set of APIs.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use concord_endpoints::{ApiSet, Origin};
use concord_meta::GroupVersion;
use concord_registry::Resources as _;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{sync::OnceCell, task::JoinError};

use crate::{
    annotations::Annotations,
    components::{Definitions, Dialect, Kinds, Sources},
    document::{self, Service, Subject, VERSION},
    extensions::{ExtensionDocument, ExtensionDocuments},
    names,
    packed::Packed,
    protobuf,
    swagger::Swagger,
};

/// How many documents that have been replaced are kept under their hashes: clients that read the index of another server
/// ask for them while servers are being replaced.
const KEPT: usize = 2;

/// What documents are made from, whatever the set.
pub(crate) struct Context {
    pub(crate) release: String,
    pub(crate) annotations: Annotations,
    pub(crate) definitions: Box<Definitions>,
    pub(crate) services: Vec<&'static Service>,
}

/// Some bytes and their hash.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) bytes: Bytes,
    pub(crate) hash: Arc<str>,
}

/// Everything that is published about a set.
pub(crate) struct Publication {
    set: Arc<ApiSet>,
    extensions: Arc<ExtensionDocuments>,
    context: Arc<Context>,
    leaves: BTreeMap<String, Arc<Document>>,
    /// The document of version 2.
    everything: Arc<Document>,
    kinds: OnceLock<Kinds>,
    index: OnceCell<Published>,
}

/// The forms that a document can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
}

/// What a document is about.
enum About {
    Subject(Subject),
    /// What another server says.
    Extension(Arc<ExtensionDocument>),
    Everything,
}

/// A document, made when it is asked for.
pub(crate) struct Document {
    about: About,
    hash: OnceLock<Arc<str>>,
    json: OnceCell<Packed>,
    protobuf: OnceCell<Packed>,
    /// Those that were here before, the newest last.
    before: Vec<(Arc<str>, Packed)>,
}

impl Publication {
    /// What is published about a set and what others serve. Documents about what `before` has, too, are taken from there.
    pub(crate) fn new(
        set: Arc<ApiSet>,
        extensions: Arc<ExtensionDocuments>,
        context: Arc<Context>,
        before: Option<&Self>,
    ) -> Self {
        let services = context.services.iter().copied().chain([&VERSION]).map(Subject::Service);
        let mut subjects: Vec<Subject> = services.chain([Subject::Groups]).collect();
        for group in set.groups() {
            for version in group.versions() {
                let resources =
                    version.resources().iter().map(|endpoint| endpoint.resource.clone()).collect();
                subjects.push(Subject::Version(version.version().clone(), resources));
            }
            if group.origin() == Origin::BuiltIn {
                subjects.push(Subject::Group(group.name().to_owned()));
            }
        }
        let keep = |(key, about): (String, About)| {
            let known = before.and_then(|before| before.leaves.get(&key));
            let leaf = match known {
                Some(known) if known.is_about(&about) => known.clone(),
                _ => Arc::new(Document::new(about, known.map(Arc::as_ref))),
            };
            (key, leaf)
        };
        let own = subjects.into_iter().map(|subject| (subject.key(), About::Subject(subject)));
        let others = others(&set, &extensions);
        Self {
            leaves: own.chain(others).collect::<BTreeMap<_, _>>().into_iter().map(keep).collect(),
            everything: Arc::new(Document::new(About::Everything, None)),
            kinds: OnceLock::new(),
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

    /// The document of version 2.
    pub(crate) fn everything(&self) -> &Arc<Document> {
        &self.everything
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
        // All documents are made one after the other, from texts that are unpacked once.
        let _texts = self.context.annotations.texts();
        let entry = |(key, leaf): (&String, &Arc<Document>)| {
            (key.clone(), json!({"serverRelativeURL": url(key, &leaf.hash(self))}))
        };
        let paths: BTreeMap<String, Value> = self.leaves.iter().map(entry).collect();
        let bytes = to_json(&json!({"paths": paths}));
        Published { hash: hash(&bytes), bytes: bytes.into() }
    }

    fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::new(&self.set.all()))
    }
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

impl Document {
    fn new(about: About, replaced: Option<&Self>) -> Self {
        let mut before = replaced.map_or_else(Vec::new, |replaced| replaced.before.clone());
        let newest = replaced.and_then(|replaced| Some((replaced.hash.get()?, replaced.json.get()?)));
        before.extend(newest.map(|(hash, json)| (hash.clone(), json.clone())));
        before.drain(..before.len().saturating_sub(KEPT));
        let (hash, json) = match &about {
            About::Extension(document) => {
                (OnceLock::from(document.hash.clone()), OnceCell::from(document.json.clone()))
            }
            _ => (OnceLock::new(), OnceCell::new()),
        };
        Self { about, hash, json, protobuf: OnceCell::new(), before }
    }

    fn is_about(&self, about: &About) -> bool {
        match (&self.about, about) {
            (About::Subject(own), About::Subject(other)) => own.is_same(other),
            (About::Extension(own), About::Extension(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// A document that was here before, by its hash.
    pub(crate) fn replaced(&self, hash: &str) -> Option<&Packed> {
        self.before.iter().find(|(known, _)| **known == *hash).map(|(_, packed)| packed)
    }

    /// The hash, if it is known.
    pub(crate) fn known_hash(&self) -> Option<Arc<str>> {
        self.hash.get().cloned()
    }

    /// The document in a form, and its hash, which is that of its JSON.
    ///
    /// # Errors
    ///
    /// When making it ended in an unexpected way.
    pub(crate) async fn published(
        self: &Arc<Self>,
        form: Form,
        publication: &Arc<Publication>,
    ) -> Result<(Packed, Arc<str>), JoinError> {
        let made = match form {
            Form::Json => &self.json,
            Form::Protobuf => &self.protobuf,
        };
        // It takes milliseconds, version 2 more of them, during which no other request should have to wait.
        let make = async || {
            let (document, publication) = (Arc::clone(self), Arc::clone(publication));
            tokio::task::spawn_blocking(move || document.make(form, &publication)).await
        };
        let packed = made.get_or_try_init(make).await?.clone();
        if let Some(hash) = self.hash.get() {
            return Ok((packed, hash.clone()));
        }
        let (document, publication) = (Arc::clone(self), Arc::clone(publication));
        let hash = tokio::task::spawn_blocking(move || document.hash(&publication)).await?;
        Ok((packed, hash))
    }

    /// The hash alone. The document is not kept: most are never read.
    fn hash(&self, publication: &Publication) -> Arc<str> {
        self.hash.get_or_init(|| hash(&self.json(publication))).clone()
    }

    fn make(&self, form: Form, publication: &Publication) -> Packed {
        match form {
            Form::Json => {
                let json = self.json(publication);
                self.hash.get_or_init(|| hash(&json));
                Packed::new(&json)
            }
            Form::Protobuf => {
                let message = match self.written(publication) {
                    Written::V3(document) => document.protobuf(),
                    Written::V2(document) => document.protobuf(),
                    Written::Foreign(document) => protobuf::encode(&document, Dialect::V3),
                };
                Packed::new(&message)
            }
        }
    }

    fn json(&self, publication: &Publication) -> Vec<u8> {
        match self.written(publication) {
            Written::V3(document) => to_json(&document),
            Written::V2(document) => to_json(&document),
            Written::Foreign(document) => to_json(&document),
        }
    }

    fn written(&self, publication: &Publication) -> Written {
        let context = &publication.context;
        let sources = Sources {
            kinds: publication.kinds(),
            texts: context.annotations.texts(),
            definitions: &*context.definitions,
        };
        match &self.about {
            About::Subject(subject) => Written::V3(subject.document(&context.release, &sources)),
            About::Extension(document) => Written::Foreign(document.value().unwrap_or_default()),
            About::Everything => {
                let leaves = publication.leaves.values();
                let subjects = leaves.clone().filter_map(|leaf| match &leaf.about {
                    About::Subject(subject) => Some(subject),
                    _ => None,
                });
                let subjects: Vec<&Subject> = subjects.collect();
                let mut swagger = Swagger::new(&subjects, &context.release, &sources);
                let others = leaves.filter_map(|leaf| match &leaf.about {
                    About::Extension(document) => document.swagger(),
                    _ => None,
                });
                others.for_each(|part| swagger.add(part));
                Written::V2(swagger)
            }
        }
    }
}

/// A document before it has a form.
enum Written {
    V3(document::Document),
    V2(Swagger),
    Foreign(Value),
}

/// Why writing cannot fail.
const SAYABLE: &str = "documents have nothing that JSON cannot say";

pub(crate) fn to_json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect(SAYABLE)
}

/// Upstream's hash: SHA-512 in capital letters.
pub(crate) fn hash(bytes: &[u8]) -> Arc<str> {
    let hash: String = digest(&SHA512, bytes).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    hash.into()
}

#[cfg(test)]
mod tests;
