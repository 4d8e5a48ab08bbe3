//! What other servers say about what they serve.

use std::sync::Arc;

use concord_codec::{Limits, Options, decode};
use concord_meta::GroupVersion;
use serde_json::{Map, Value};

use crate::{
    legacy,
    mend::mend,
    merge,
    packed::Packed,
    publication::{hash, to_json},
};

/// Something that another server called a document is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDocument {
    /// It is no JSON object.
    #[error("the document is not a JSON object: {0}")]
    NotJson(String),
    /// It is of another version, or of none.
    #[error("the document is not of OpenAPI {0}")]
    NotVersion(&'static str),
}

/// A document of version 2 of another server, of which only what belongs to one version of a group is kept.
#[derive(Debug, Clone)]
pub struct SwaggerPart {
    part: Packed,
    converted: Packed,
}

/// The documents about a version of a group that another server serves.
#[derive(Debug, Clone)]
pub struct ExtensionDocument {
    pub(crate) json: Packed,
    pub(crate) hash: Arc<str>,
    swagger: Option<Packed>,
}

/// The documents of all other servers. Where two of them use a name for different types, the document of version 2 has the
/// name for the type of the first.
#[derive(Debug, Default, PartialEq)]
pub struct ExtensionDocuments(pub(crate) Vec<(GroupVersion, Arc<ExtensionDocument>)>);

/// Gives the documents of other servers at the moment.
pub type ExtensionDocumentSource = dyn Fn() -> Arc<ExtensionDocuments> + Send + Sync;

impl FromIterator<(GroupVersion, Arc<ExtensionDocument>)> for ExtensionDocuments {
    fn from_iter<T: IntoIterator<Item = (GroupVersion, Arc<ExtensionDocument>)>>(documents: T) -> Self {
        Self(documents.into_iter().collect())
    }
}

impl SwaggerPart {
    /// Reads a document of version 2, which may be about more than that version.
    ///
    /// # Errors
    ///
    /// [`InvalidDocument`].
    pub fn read(bytes: &[u8], version: &GroupVersion) -> Result<Self, InvalidDocument> {
        let document = read(bytes)?;
        if document.get("swagger").and_then(Value::as_str) != Some("2.0") {
            return Err(InvalidDocument::NotVersion("2.0"));
        }
        Ok(Self {
            part: Packed::new(&to_json(&merge::part(&document, version))),
            converted: Packed::new(&to_json(&legacy::convert(&document, version))),
        })
    }
}

impl ExtensionDocument {
    /// Reads a document of version 3. What is not below the paths of that version is left out: nobody speaks for others.
    /// What no client could read is put right.
    ///
    /// # Errors
    ///
    /// [`InvalidDocument`].
    pub fn read(bytes: &[u8], version: &GroupVersion) -> Result<Self, InvalidDocument> {
        let mut document = read(bytes)?;
        if !document.get("openapi").and_then(Value::as_str).is_some_and(|of| of.starts_with("3.")) {
            return Err(InvalidDocument::NotVersion("3"));
        }
        let own: Map<String, Value> =
            legacy::own_paths(&document, version).map(|(path, item)| (path.clone(), item.clone())).collect();
        document.insert("paths".to_owned(), own.into());
        mend(&mut document);
        let json = to_json(&document);
        Ok(Self { json: Packed::new(&json), hash: hash(&json), swagger: None })
    }

    /// The document of a server that has none of version 3.
    #[must_use]
    pub fn converted(swagger: &SwaggerPart) -> Self {
        let json = swagger.converted.clone();
        let plain = json.plain().unwrap_or_default();
        Self { hash: hash(&plain), json, swagger: Some(swagger.part.clone()) }
    }

    /// The same with what the document of version 2 gets from the server.
    #[must_use]
    pub fn with_swagger(self, swagger: Option<&SwaggerPart>) -> Self {
        Self { swagger: swagger.map(|swagger| swagger.part.clone()), ..self }
    }

    /// The document as it is kept on disk: the length of the one of version 3, that, and what version 2 gets, if anything.
    pub(crate) fn to_kept(&self) -> Vec<u8> {
        let (json, swagger) = (self.json.gzip(), self.swagger.as_ref().map(Packed::gzip));
        let length = (json.len() as u64).to_be_bytes();
        [&length[..], &json, swagger.as_deref().unwrap_or_default()].concat()
    }

    /// What was kept, if it is a document.
    pub(crate) fn from_kept(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
        let (json, swagger) = rest.split_at_checked(length)?;
        let unpack = |gzip: &[u8]| {
            let plain = Packed::unpack(gzip, LIMITS.max_bytes).ok()?;
            read(&plain).ok().map(|_| plain)
        };
        let (json, swagger) = (unpack(json)?, (!swagger.is_empty()).then(|| unpack(swagger)));
        let swagger = match swagger {
            Some(swagger) => Some(Packed::new(&swagger?)),
            None => None,
        };
        Some(Self { json: Packed::new(&json), hash: hash(&json), swagger })
    }

    /// What the document of version 2 gets from it.
    pub(crate) fn swagger(&self) -> Option<Map<String, Value>> {
        object(&self.swagger.as_ref()?.plain().ok()?)
    }

    /// The document of version 3.
    pub(crate) fn value(&self) -> Option<Value> {
        object(&self.json.plain().ok()?).map(Value::Object)
    }
}

impl PartialEq for ExtensionDocument {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &Packed, other: &Packed| one.gzip() == other.gzip();
        self.hash == other.hash
            && match (&self.swagger, &other.swagger) {
                (Some(one), Some(other)) => same(one, other),
                (one, other) => one.is_none() && other.is_none(),
            }
    }
}

/// What a document may cost: several times as much as the largest there is, which describes all of Kubernetes.
const LIMITS: Limits = Limits { max_bytes: 32 * 1024 * 1024, max_depth: 200 };

fn read(bytes: &[u8]) -> Result<Map<String, Value>, InvalidDocument> {
    let decoded = decode(bytes, &Options { limits: LIMITS, ..Options::default() });
    decoded.map(|decoded| decoded.object).map_err(|error| InvalidDocument::NotJson(error.to_string()))
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    read(bytes).ok()
}
