//! Documents of other servers on disk, so that they are still there when this server starts and the others are away.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{extensions::ExtensionDocument, publication::hash};

/// What the names of its files end with, so that nothing else is ever taken for one of them or removed.
const SUFFIX: &str = ".openapi";
/// The same while a file is being written.
const UNFINISHED: &str = ".openapi-new";
/// The longest file that is read: twice what a document may have, and documents are kept compressed.
const LONGEST: u64 = 64 * 1024 * 1024;
/// How long the hash is with which a file begins.
const HASH: usize = 128;
/// How much of a hash names a file.
const NAME: usize = 64;

/// A directory with the last good documents of other servers: one file each, which begins with the hash of the rest of it.
/// Whatever is not as it was written is taken for nothing: the documents are asked for again anyway.
///
/// Everything blocks. A file is replaced at once and not synced: a crash leaves the old one, the new one, or one whose hash is
/// wrong.
#[derive(Debug, Clone)]
pub struct DocumentArchive {
    directory: Arc<Path>,
}

impl DocumentArchive {
    /// Documents in a directory, which is made when there is something to keep.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory: directory.into() }
    }

    /// The document that was kept of somebody; `owner` is all that tells it from others.
    pub fn find(&self, owner: &str) -> Option<ExtensionDocument> {
        let path = self.directory.join(file_name(owner));
        if fs::metadata(&path).ok()?.len() > LONGEST {
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        let (told, rest) = bytes.split_at_checked(HASH)?;
        if told != hash(rest).as_bytes() {
            tracing::warn!(path = %path.display(), "A file with an OpenAPI document is damaged and of no use.");
            return None;
        }
        ExtensionDocument::from_kept(rest)
    }

    /// Keeps a document in the place of the one before.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn keep(&self, owner: &str, document: &ExtensionDocument) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let path = self.directory.join(file_name(owner));
        let unfinished = path.with_extension(&UNFINISHED[1..]);
        let rest = document.to_kept();
        fs::write(&unfinished, [hash(&rest).as_bytes(), &rest].concat())?;
        fs::rename(unfinished, path)
    }

    /// Removes what was kept of all others.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read, or a file of it not removed.
    pub fn retain<'a>(&self, owners: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let wanted: BTreeSet<String> = owners.map(file_name).collect();
        let files = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            files => files?,
        };
        for file in files {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            let is_own = name.ends_with(SUFFIX) || name.ends_with(UNFINISHED);
            if is_own && !wanted.contains(&name) {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }
}

/// Names of APIServices may be longer than those of files.
fn file_name(owner: &str) -> String {
    let hash = hash(owner.as_bytes());
    format!("{}{SUFFIX}", &hash[..NAME])
}

#[cfg(test)]
mod tests {
    use concord_meta::GroupVersion;
    use serde_json::json;
    use tempfile::tempdir;

    use super::*;
    use crate::extensions::SwaggerPart;

    fn document(title: &str, with_swagger: bool) -> ExtensionDocument {
        let version = GroupVersion::new("a.io", "v1");
        let read = |value: serde_json::Value| value.to_string().into_bytes();
        let swagger = json!({"swagger": "2.0", "paths": {"/apis/a.io/v1/things": {}}});
        let swagger = SwaggerPart::read(&read(swagger), &version).expect("a document");
        let leaf = json!({"openapi": "3.0.0", "info": {"title": title, "version": "1"}});
        let leaf = ExtensionDocument::read(&read(leaf), &version).expect("a document");
        leaf.with_swagger(with_swagger.then_some(&swagger))
    }

    #[test]
    fn documents_are_found_as_they_were_kept() {
        let directory = tempdir().expect("a directory");
        let path = directory.path().join("made");
        let archive = DocumentArchive::new(path.clone());
        assert_eq!(archive.find("a"), None);
        archive.retain([].into_iter()).expect("nothing to do");
        archive.keep("a", &document("one", false)).expect("kept");
        archive.keep("b", &document("two", true)).expect("kept");
        archive.keep("a", &document("three", true)).expect("kept");
        let again = DocumentArchive::new(path.clone());
        assert_eq!(again.find("a"), Some(document("three", true)));
        assert_eq!(again.find("b"), Some(document("two", true)));

        fs::write(path.join("notes.txt"), "somebody's").expect("written");
        fs::write(path.join("x.openapi-new"), "cut").expect("written");
        again.retain(["b"].into_iter()).expect("removed");
        assert_eq!((again.find("a"), again.find("b").is_some()), (None, true));
        assert_eq!(fs::read_dir(&path).expect("a directory").count(), 2);
    }

    #[test]
    fn what_is_damaged_is_no_document() {
        let directory = tempdir().expect("a directory");
        let archive = DocumentArchive::new(directory.path().to_owned());
        archive.keep("a", &document("one", true)).expect("kept");
        let path = directory.path().join(file_name("a"));
        let good = fs::read(&path).expect("a file");
        for at in [0, HASH, HASH + 7, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).expect("written");
            assert_eq!(archive.find("a"), None, "{at}");
            fs::write(&path, &good[..at]).expect("written");
            assert_eq!(archive.find("a"), None, "cut at {at}");
        }
        // The hash is right, what it is of is not.
        for rest in [&b""[..], b"12345678", &[0xff; 64], &[0; 64]] {
            fs::write(&path, [hash(rest).as_bytes(), rest].concat()).expect("written");
            assert_eq!(archive.find("a"), None, "{rest:?}");
        }
        fs::write(&path, &good).expect("written");
        assert!(archive.find("a").is_some());
    }
}
