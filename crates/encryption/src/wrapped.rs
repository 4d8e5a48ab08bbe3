//! What is stored of a value whose key a key management service has.

use aws_lc_rs::digest::{Context, SHA256};
use concord_meta::{
    field::{Error, Path},
    names::{dns1123_label, dns1123_subdomain},
};

use crate::{
    OpenError,
    kms::{Annotations, key_id_hash},
};

/// Upstream's limits, in bytes.
const LONGEST_SOURCE: usize = 1024;
const LONGEST_ID: usize = 1024;
const LARGEST_ANNOTATIONS: usize = 32 * 1024;

/// Upstream's message.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EncryptedObject {
    #[prost(bytes = "vec", tag = "1")]
    encrypted_data: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(bytes = "vec", tag = "3")]
    encrypted_dek_source: Vec<u8>,
    #[prost(btree_map = "string, bytes", tag = "4")]
    annotations: Annotations,
    #[prost(int32, tag = "5")]
    encrypted_dek_source_type: i32,
}

/// What was encrypted by the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceType {
    /// The key of the value.
    Key,
    /// What the key of the value is derived from, as upstream does it since 1.29.
    #[default]
    Seed,
}

/// A key as the service encrypted it, with all that it wants to be told to decrypt it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wrapped {
    /// The encrypted key or seed.
    pub source: Vec<u8>,
    /// Which of them it is.
    pub source_type: SourceType,
    /// What the service calls the key that it did that with.
    pub key_id: String,
    /// Whatever else the service said.
    pub annotations: Annotations,
}

impl EncryptedObject {
    /// The encrypted key, and the value; if both are what they may be.
    pub(crate) fn check(self) -> Result<(Wrapped, Vec<u8>), OpenError> {
        let source_type = match self.encrypted_dek_source_type {
            0 => SourceType::Key,
            1 => SourceType::Seed,
            other => return Err(malformed(format!("unknown encryptedDEKSourceType: {other}"))),
        };
        if self.encrypted_data.is_empty() {
            return Err(malformed("encrypted data is empty"));
        }
        let wrapped = Wrapped {
            source: self.encrypted_dek_source,
            source_type,
            key_id: self.key_id,
            annotations: self.annotations,
        };
        wrapped.validate()?;
        Ok((wrapped, self.encrypted_data))
    }
}

impl Wrapped {
    /// Whether it may be stored.
    ///
    /// # Errors
    ///
    /// Why not, in upstream's words.
    pub fn validate(&self) -> Result<(), OpenError> {
        let about = "failed to validate encrypted DEK source";
        match self.source.len() {
            0 => return Err(malformed(format!("{about}: encrypted DEK source is empty"))),
            size if size > LONGEST_SOURCE => {
                let what = format!("{about}: encrypted DEK source is {size} bytes");
                return Err(malformed(format!("{what}, which exceeds the max size of {LONGEST_SOURCE}")));
            }
            _ => {}
        }
        validate_key_id(&self.key_id)
            .map_err(|why| malformed(format!("failed to validate key id: {why}")))?;
        self.validate_annotations().map_err(|why| malformed(format!("failed to validate annotations: {why}")))
    }

    fn validate_annotations(&self) -> Result<(), String> {
        let mut errors: Vec<String> = self.annotations.keys().filter_map(|name| unqualified(name)).collect();
        let size: usize = self.annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        if size > LARGEST_ANNOTATIONS {
            errors.push(format!(
                "total size of annotations is {size}, which exceeds the max size of {LARGEST_ANNOTATIONS}"
            ));
        }
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(format!("[{}]", errors.join(", "))),
        }
    }

    /// What it is remembered by.
    pub(crate) fn hash(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let mut part = |bytes: &[u8]| {
            context.update(&(bytes.len() as u64).to_be_bytes());
            context.update(bytes);
        };
        part(&[u8::from(self.source_type == SourceType::Seed)]);
        part(&self.source);
        part(self.key_id.as_bytes());
        for (name, value) in &self.annotations {
            part(name.as_bytes());
            part(value);
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(context.finish().as_ref());
        hash
    }

    /// What is said of it where people look: not the ID itself.
    pub(crate) fn label(&self) -> String {
        let hash = key_id_hash(&self.key_id);
        let short = hash.trim_start_matches("sha256:").get(..16).unwrap_or_default().to_owned();
        match self.source_type {
            SourceType::Seed => short,
            SourceType::Key => format!("{short}:key"),
        }
    }

    /// Together with a value.
    pub(crate) fn with(self, data: Vec<u8>) -> EncryptedObject {
        EncryptedObject {
            encrypted_data: data,
            key_id: self.key_id,
            encrypted_dek_source: self.source,
            annotations: self.annotations,
            encrypted_dek_source_type: i32::from(self.source_type == SourceType::Seed),
        }
    }
}

/// Whether a service may call a key so.
///
/// # Errors
///
/// Why not, in upstream's words.
pub fn validate_key_id(id: &str) -> Result<(), String> {
    match id.len() {
        0 => Err("keyID is empty".to_owned()),
        size if size > LONGEST_ID => {
            Err(format!("keyID is {size} bytes, which exceeds the max size of {LONGEST_ID}"))
        }
        _ => Ok(()),
    }
}

/// Why a name is not that of a domain, in upstream's words.
fn unqualified(name: &str) -> Option<String> {
    let path = Path::new("annotations");
    let (name, wrong) = match name.strip_suffix('.').unwrap_or(name) {
        _ if name.is_empty() => return Some(Error::required(&path, "").to_string()),
        name => (name, dns1123_subdomain(name)),
    };
    let wrong = match wrong.is_empty() {
        false => wrong.join(","),
        true if !name.contains('.') => {
            "should be a domain with at least two segments separated by dots".to_owned()
        }
        true => {
            let wrong = name.split('.').map(|label| (label, dns1123_label(label)));
            let (label, wrong) = wrong.into_iter().find(|(_, wrong)| !wrong.is_empty())?;
            return Some(Error::invalid(&path, label, wrong.join(",")).to_string());
        }
    };
    Some(Error::invalid(&path, name, wrong).to_string())
}

fn malformed(why: impl Into<String>) -> OpenError {
    OpenError::Malformed(why.into())
}
