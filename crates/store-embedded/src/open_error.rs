use std::path::PathBuf;

/// Why a store file could not be opened. The texts say what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the store open.
    #[error(
        "the store {} is in use by process {holder}: stop it first, or use another data directory",
        path.display()
    )]
    Locked {
        /// The store file.
        path: PathBuf,
        /// The process id of the holder as it wrote it down, or `(unknown)`.
        holder: String,
    },

    /// The file or its directory cannot be used.
    #[error("cannot open the store {}: {reason}", path.display())]
    Io {
        /// The store file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },

    /// The file is something else.
    #[error(
        "{} is not a Concord store ({reason}): it was left untouched; give the path of a store or of a \
         file that does not exist yet",
        path.display()
    )]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// How one can tell.
        reason: String,
    },

    /// The file was written by a release that this one does not understand.
    #[error(
        "the store {} has format {found}, this release reads format {supported}: run the release that \
         wrote it",
        path.display()
    )]
    Format {
        /// The store file.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The format of this release.
        supported: i64,
    },

    /// The file is damaged. Nothing was repaired or changed.
    #[error(
        "the store {} is damaged ({reason}): nothing was changed; keep a copy of the file, look at it \
         with `concord store check`, and go back to the last backup with `concord store restore`",
        path.display()
    )]
    Damaged {
        /// The store file.
        path: PathBuf,
        /// The first thing that is wrong.
        reason: String,
    },
}
