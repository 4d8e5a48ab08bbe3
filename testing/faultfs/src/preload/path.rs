//! Which file a call is about, and whether it is watched.

use std::{
    ffi::{CStr, c_char, c_int},
    io::Write as _,
    sync::OnceLock,
};

use super::{
    layout,
    sys::{self, PATH_MAX},
};

static WATCHED: OnceLock<&'static [u8]> = OnceLock::new();

/// A path on the stack: no call may allocate.
pub(crate) struct Path {
    bytes: [u8; PATH_MAX],
    len: usize,
}

pub(crate) fn start() {
    if let Some(dir) = sys::env(layout::ENV_DIR) {
        // A second call is impossible, and would change nothing.
        WATCHED.get_or_init(|| dir.to_bytes());
    }
}

impl Path {
    const EMPTY: Self = Self { bytes: [0; PATH_MAX], len: 0 };

    /// The file behind a descriptor, if it is watched. Leaves errno alone.
    pub(crate) fn of_fd(fd: c_int) -> Option<Self> {
        WATCHED.get()?;
        let errno = sys::errno();
        let path = Self::link_of(fd).filter(Self::is_watched);
        sys::set_errno(errno);
        path
    }

    /// The file a path names as seen from a directory, if it is watched. Links are not followed.
    ///
    /// # Safety
    ///
    /// `path` is null or a C string.
    pub(crate) unsafe fn of_name(dir: c_int, path: *const c_char) -> Option<Self> {
        WATCHED.get()?;
        if path.is_null() {
            return None;
        }
        // SAFETY: the caller says it is a C string.
        let name = unsafe { CStr::from_ptr(path) }.to_bytes();
        let errno = sys::errno();
        let absolute =
            if name.starts_with(b"/") { Self::EMPTY.join(name) } else { Self::base(dir)?.join(name) };
        sys::set_errno(errno);
        absolute.filter(Self::is_watched)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn is_watched(&self) -> bool {
        let rest = WATCHED.get().and_then(|dir| self.as_bytes().strip_prefix(*dir));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    fn link_of(fd: c_int) -> Option<Self> {
        let mut link = [0_u8; 32];
        write!(&mut link[..31], "/proc/self/fd/{fd}").ok()?;
        let mut path = Self::EMPTY;
        path.len = sys::link_target(CStr::from_bytes_until_nul(&link).ok()?, &mut path.bytes)?.len();
        Some(path)
    }

    fn base(dir: c_int) -> Option<Self> {
        let mut path = Self::EMPTY;
        if dir == sys::AT_FDCWD {
            path.len = sys::working_dir(&mut path.bytes)?.len();
        } else {
            path = Self::link_of(dir)?;
        }
        path.join(b"/")
    }

    fn join(mut self, name: &[u8]) -> Option<Self> {
        let end = self.len + name.len();
        self.bytes.get_mut(self.len..end)?.copy_from_slice(name);
        self.len = end;
        Some(self)
    }
}
