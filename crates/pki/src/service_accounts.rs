use std::path::{Path, PathBuf};

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::{
    Error,
    directory::{Directory, malformed},
    files::{self, PRIVATE, PUBLIC},
};

/// The key that signs the tokens of service accounts. Servers that share the directory accept each other's tokens.
///
/// A new one is on P-256: it is made at once, and signs many times faster than RSA does.
pub struct ServiceAccountKey {
    /// The file of the key.
    pub path: PathBuf,
    /// The private key, PEM.
    pub private: String,
    /// Whether this call made the key.
    pub made: bool,
}

impl ServiceAccountKey {
    /// Opens `sa.key` in `directory`, or makes it; `sa.pub` beside it is for those who only verify.
    ///
    /// # Errors
    ///
    /// Every [`Error`] names the file it is about. A key that cannot be used is reported, never replaced: tokens that it
    /// signed would be void.
    pub fn open_or_create(directory: &Path) -> Result<Self, Error> {
        let directory = Directory::open_or_create(directory)?;
        let (path, public) = (directory.file("sa.key"), directory.file("sa.pub"));
        let known_public = files::read(&public)?;
        if let Some(private) = files::read(&path)? {
            // One that is not ours, such as kubeadm's, comes with its public key, or needs none.
            if known_public.is_none()
                && let Ok(key) = KeyPair::from_pem(&private)
            {
                files::create(&public, &key.public_key_pem(), PUBLIC)?;
            }
            return Ok(Self { path, private, made: false });
        }
        if known_public.is_some() {
            let reason = "its private key sa.key is not there";
            return Err(malformed("public key of service accounts", &public, reason));
        }
        // The private key first: a crash then leaves something that can be completed.
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let private = key.serialize_pem();
        files::create(&path, &private, PRIVATE)?;
        files::create(&public, &key.public_key_pem(), PUBLIC)?;
        Ok(Self { path, private, made: true })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn the_key_is_made_once_and_is_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = ServiceAccountKey::open_or_create(directory.path()).expect("made");
        let mode = fs::metadata(&first.path).expect("there").permissions().mode();
        assert!(first.made && mode & 0o777 == PRIVATE, "{mode:o}");
        let second = ServiceAccountKey::open_or_create(directory.path()).expect("opened");
        assert!(!second.made && second.private == first.private);
        let public = fs::read_to_string(directory.path().join("sa.pub")).expect("there");
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----"), "{public}");
    }

    #[test]
    fn a_crash_between_the_files_is_completed() {
        let directory = tempfile::tempdir().expect("a directory");
        ServiceAccountKey::open_or_create(directory.path()).expect("made");
        let public = directory.path().join("sa.pub");
        let text = fs::read_to_string(&public).expect("there");
        fs::remove_file(&public).expect("removed");
        ServiceAccountKey::open_or_create(directory.path()).expect("opened");
        assert_eq!(fs::read_to_string(&public).expect("there again"), text);
    }

    #[test]
    fn a_lost_key_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = ServiceAccountKey::open_or_create(directory.path()).expect("made");
        fs::remove_file(&key.path).expect("removed");
        let error = ServiceAccountKey::open_or_create(directory.path()).err().expect("refused");
        assert!(error.to_string().contains("sa.key"), "{error}");
        assert!(!key.path.exists());
    }
}
