//! Documents, made when they are asked for.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::{sync::OnceCell, task::JoinError};

use crate::{
    components::Dialect,
    document::{self, Subject},
    everything::Told,
    extensions::ExtensionDocument,
    packed::Packed,
    protobuf,
    publication::{Publication, hash, to_json},
};

/// How many documents that have been replaced are kept under their hashes: clients that read the index of another server
/// ask for them while servers are being replaced.
const KEPT: usize = 2;

/// The forms that a document can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
}

/// What a document is about.
pub(crate) enum About {
    Subject(Subject),
    /// What another server says.
    Extension(Arc<ExtensionDocument>),
}

/// A document, made when it is asked for.
pub(crate) struct Document {
    about: About,
    hash: OnceLock<Arc<str>>,
    json: OnceCell<Packed>,
    protobuf: OnceCell<Packed>,
    /// What it says in version 2.
    told: OnceLock<Told>,
    /// Those that were here before, the newest last.
    before: Vec<(Arc<str>, Packed)>,
}

/// A document in a form, and the hash of its JSON.
pub(crate) type Made = (Packed, Arc<str>);

/// Why a document that was made is not kept.
enum NotKept {
    Failed(JoinError),
    /// It says something else than what its hash is known to be of.
    Other(Made),
}

impl Document {
    pub(crate) fn new(about: About, replaced: Option<&Self>) -> Self {
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
        Self { about, hash, json, protobuf: OnceCell::new(), told: OnceLock::new(), before }
    }

    pub(crate) fn is_about(&self, about: &About) -> bool {
        match (&self.about, about) {
            (About::Subject(own), About::Subject(other)) => own.is_same(other),
            (About::Extension(own), About::Extension(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// Whether it is this document of another server.
    pub(crate) fn is_of(&self, document: &Arc<ExtensionDocument>) -> bool {
        matches!(&self.about, About::Extension(own) if Arc::ptr_eq(own, document))
    }

    /// Whether it is about custom resources.
    pub(crate) fn is_custom(&self) -> bool {
        self.subject().is_some_and(Subject::is_custom)
    }

    /// What of this server it is about.
    pub(crate) fn subject(&self) -> Option<&Subject> {
        if let About::Subject(subject) = &self.about { Some(subject) } else { None }
    }

    /// A document that was here before, by its hash.
    pub(crate) fn replaced(&self, hash: &str) -> Option<&Packed> {
        self.before.iter().find(|(known, _)| **known == *hash).map(|(_, packed)| packed)
    }

    /// The hash, if it is known.
    pub(crate) fn known_hash(&self) -> Option<Arc<str>> {
        self.hash.get().cloned()
    }

    fn form(&self, form: Form) -> &OnceCell<Packed> {
        match form {
            Form::Json => &self.json,
            Form::Protobuf => &self.protobuf,
        }
    }

    /// The document in a form, and the hash of its JSON. That is another than [`Self::known_hash`] if what it is about
    /// cannot be told any more as it was.
    ///
    /// # Errors
    ///
    /// When making it ended in an unexpected way.
    pub(crate) async fn published(
        self: &Arc<Self>,
        form: Form,
        publication: &Arc<Publication>,
    ) -> Result<Made, JoinError> {
        // It takes milliseconds, during which no other request should have to wait.
        let make = async || {
            let (document, publication) = (Arc::clone(self), Arc::clone(publication));
            let made = tokio::task::spawn_blocking(move || document.make(form, &publication)).await;
            let (packed, hash) = made.map_err(NotKept::Failed)?;
            match self.hash.get() {
                Some(known) if *known != hash => Err(NotKept::Other((packed, hash))),
                _ => Ok(packed),
            }
        };
        let packed = match self.form(form).get_or_try_init(make).await {
            Ok(packed) => packed.clone(),
            Err(NotKept::Failed(error)) => return Err(error),
            Err(NotKept::Other(made)) => return Ok(made),
        };
        let known = self.hash.get().cloned();
        Ok((packed, known.unwrap_or_else(|| unreachable!("whoever makes a document notes its hash"))))
    }

    /// The hash alone. The document is kept for a moment only: most are never read.
    pub(crate) fn hash(&self, publication: &Publication) -> Arc<str> {
        let make = || {
            let json = self.written(publication).json();
            let hash = hash(&json);
            publication.recent().keep(&hash, json);
            hash
        };
        self.hash.get_or_init(make).clone()
    }

    /// The document, and the hash of its JSON, which is noted if none is known.
    pub(crate) fn make(&self, form: Form, publication: &Publication) -> Made {
        let known = self.hash.get().filter(|_| form == Form::Json);
        if let Some((hash, json)) = known.and_then(|hash| Some((hash, publication.recent().take(hash)?))) {
            return (Packed::new(&json), hash.clone());
        }
        let written = self.written(publication);
        let json = written.json();
        let hash = match &self.about {
            // Read and written again, it may have other bytes.
            About::Extension(document) => document.hash.clone(),
            _ => hash(&json),
        };
        self.hash.get_or_init(|| hash.clone());
        match form {
            Form::Json => (Packed::new(&json), hash),
            Form::Protobuf => (Packed::new(&written.protobuf()), hash),
        }
    }

    fn written(&self, publication: &Publication) -> Written {
        match &self.about {
            About::Subject(subject) => {
                let sources = publication.sources(subject.is_custom());
                Written::V3(subject.document(publication.release(), &sources))
            }
            About::Extension(document) => Written::Foreign(document.value().unwrap_or_default()),
        }
    }

    /// What it says in version 2, which is made once.
    pub(crate) fn told(&self, publication: &Publication) -> Option<&Told> {
        self.subject().map(|subject| self.told.get_or_init(|| Told::new(subject, publication)))
    }

    /// Whether [`Self::told`] is made already.
    pub(crate) fn is_told(&self) -> bool {
        self.told.get().is_some()
    }
}

/// A document before it has a form.
enum Written {
    V3(document::Document),
    Foreign(Value),
}

impl Written {
    fn json(&self) -> Vec<u8> {
        match self {
            Self::V3(document) => to_json(document),
            Self::Foreign(document) => to_json(document),
        }
    }

    fn protobuf(&self) -> Vec<u8> {
        match self {
            Self::V3(document) => document.protobuf(),
            Self::Foreign(document) => protobuf::encode(document, Dialect::V3),
        }
    }
}
