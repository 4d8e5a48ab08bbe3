//! Reading and writing single files so that a crash leaves the old content or the new one, never a part.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use tempfile::NamedTempFile;

use crate::Error;

/// For keys: nobody but the owner.
pub(crate) const PRIVATE: u32 = 0o600;
/// For certificates: they are shown to everyone who connects.
pub(crate) const PUBLIC: u32 = 0o644;

/// Keeps other processes from making files in a directory at the same time.
pub(crate) struct Lock(#[expect(dead_code, reason = "held until dropped")] Option<File>);

impl Lock {
    /// Waits until no other process has it. In a directory where nothing can be made there is nothing to
    /// wait for: whoever tries to make something there is told so.
    pub(crate) fn acquire(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(".lock");
        let file = match File::options().create(true).truncate(false).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if is_read_only(&error) => return Ok(Self(None)),
            Err(source) => return Err(failed("create", &path)(source)),
        };
        file.lock().map_err(failed("lock", &path))?;
        Ok(Self(Some(file)))
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The text of a file, or `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("read", path)(source)),
    }
}

/// Whether nobody but the owner can read a file.
pub(crate) fn is_private(path: &Path) -> Result<bool, Error> {
    let mode = fs::metadata(path).map_err(failed("read", path))?.permissions().mode();
    Ok(mode & 0o777 == PRIVATE)
}

/// Replaces a file.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let file = temporary(path, text, mode)?;
    file.persist(path).map_err(|error| failed("write", path)(error.error))?;
    sync_directory(path)
}

/// Makes a file that must not exist yet.
pub(crate) fn create(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let file = temporary(path, text, mode)?;
    file.persist_noclobber(path).map_err(|error| failed("create", path)(error.error))?;
    sync_directory(path)
}

/// A complete, synced file beside `path` that vanishes unless it is given that name.
fn temporary(path: &Path, text: &str, mode: u32) -> Result<NamedTempFile, Error> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let write = || {
        let mut file = NamedTempFile::new_in(directory)?;
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(failed("write", path))
}

/// A new name is durable only when its directory is.
fn sync_directory(path: &Path) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed("sync", directory))
}

pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
    }

    #[test]
    fn files_get_their_mode_and_leave_nothing_else_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let (key, certificate) = (directory.path().join("k"), directory.path().join("c"));
        create(&key, "secret", PRIVATE).expect("created");
        replace(&certificate, "public", PUBLIC).expect("written");
        assert_eq!((mode(&key), mode(&certificate)), (0o600, 0o644));
        assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 2);
    }

    #[test]
    fn creating_never_overwrites() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ca.key");
        create(&path, "first", PRIVATE).expect("created");
        assert!(matches!(create(&path, "second", PRIVATE), Err(Error::Io { action: "create", .. })));
        assert_eq!(read(&path).expect("read").as_deref(), Some("first"));
        assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 1);
    }

    #[test]
    fn an_absent_file_is_no_error_and_an_unreadable_one_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(read(&directory.path().join("nothing")).expect("read"), None);
        let error = read(directory.path()).expect_err("a directory is not a file");
        assert!(error.to_string().contains(&directory.path().display().to_string()), "{error}");
    }
}
