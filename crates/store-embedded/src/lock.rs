use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::OpenError;

/// Keeps other processes from opening the same store. The kernel lets go of the lock when the
/// process ends, however it ends; the file stays and only names the last holder.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn acquire(store: &Path) -> Result<Self, OpenError> {
        let io = |error: std::io::Error| OpenError::Io {
            path: store.to_owned(),
            reason: format!("{}: {error}", lock_path(store).display()),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(lock_path(store)).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {
                write_pid(&mut file).map_err(io)?;
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                Err(OpenError::Locked { path: store.to_owned(), holder: read_pid(&mut file) })
            }
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }
}

fn lock_path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> String {
    let mut text = String::new();
    // The holder may be about to write its id: then nobody knows it yet, which is no error.
    let known = file.take(32).read_to_string(&mut text).is_ok() && !text.trim().is_empty();
    if known { text.trim().to_owned() } else { "(unknown)".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_opener_is_told_who_holds_the_store() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = dir.path().join("store.db");
        let held = Lock::acquire(&store).expect("nobody holds it");
        let error = Lock::acquire(&store).expect_err("it is held");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        Lock::acquire(&store).expect("it is free again");
    }
}
