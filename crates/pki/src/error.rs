use std::{io, path::PathBuf};

/// Why certificates could not be read, made or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The authority's certificate is there and its key is not. Making a new key would make every client
    /// that trusts the certificate refuse the server.
    #[error(
        "{} exists but its key {} does not; restore the key from a backup, or move the certificate away to \
         start with a new authority (clients must then trust the new one)",
        certificate.display(),
        key.display()
    )]
    KeyMissing {
        /// The certificate found.
        certificate: PathBuf,
        /// The key that belongs beside it.
        key: PathBuf,
    },

    /// A file does not hold what its name says.
    #[error("{} is not a usable {what}: {reason}; restore it from a backup or move it away", path.display())]
    Malformed {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },

    /// The authority in the directory cannot sign a certificate that others accept: its key is another
    /// one's, or it was not made by this crate.
    #[error("the authority in {} cannot issue a {what} certificate that others accept: {reason}", path.display())]
    UnusableAuthority {
        /// What kind of certificate.
        what: &'static str,
        /// The authority's certificate.
        path: PathBuf,
        /// What whoever checks it would say.
        reason: String,
    },

    /// A certificate and a key that an operator chose do not do.
    #[error(
        "cannot serve with the certificate {} and the key {}: {reason}",
        certificate.display(),
        key.display()
    )]
    UnusablePair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// A certificate or key could not be made.
    #[error("cannot make a certificate")]
    Generate(#[from] rcgen::Error),
}
