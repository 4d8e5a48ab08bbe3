//! The record of what reached the file system, in order.
//!
//! Each record is appended by one vectored write to a file opened for appending, which the kernel does
//! under the file's lock: records of several threads do not mix, and their order is the order in which
//! the calls returned.

use std::{
    ffi::{c_int, c_void},
    process,
    sync::atomic::{AtomicI32, Ordering},
};

use super::{
    layout::{self, Kind},
    path::Path,
    sys::{self, IoVec},
};

static FILE: AtomicI32 = AtomicI32::new(-1);

pub(crate) fn start() {
    if let Some(path) = sys::env(layout::ENV_TRACE) {
        let flags = sys::O_WRONLY | sys::O_APPEND | sys::O_CREAT | sys::O_CLOEXEC;
        // SAFETY: the path is a C string.
        let fd = unsafe { sys::open64(path.as_ptr(), flags, 0o600) };
        if fd < 0 {
            // A test that believes in a trace must not go on without one.
            process::abort();
        }
        FILE.store(fd, Ordering::Relaxed);
    }
}

/// Appends a record without payload.
pub(crate) fn event(kind: Kind, path: &Path, position: u64) {
    // SAFETY: an empty payload is not read.
    unsafe { record(kind, path, position, std::ptr::dangling(), 0) };
}

/// Appends a record with `len` bytes at `payload`. Leaves errno alone.
///
/// # Safety
///
/// The bytes are readable.
pub(crate) unsafe fn record(kind: Kind, path: &Path, position: u64, payload: *const c_void, len: usize) {
    let fd = FILE.load(Ordering::Relaxed);
    if fd < 0 {
        return;
    }
    let path = path.as_bytes();
    let (Ok(path_len), Ok(payload_len)) = (u16::try_from(path.len()), u32::try_from(len)) else {
        process::abort();
    };
    let header = layout::header(kind, path_len, position, payload_len);
    let pieces = [
        IoVec { base: header.as_ptr().cast(), len: header.len() },
        IoVec { base: path.as_ptr().cast(), len: path.len() },
        IoVec { base: payload, len },
    ];
    let errno = sys::errno();
    // SAFETY: the pieces point to this function's variables and to what the caller vouches for.
    let written = unsafe { sys::writev(fd, pieces.as_ptr(), pieces.len() as c_int) };
    if usize::try_from(written) != Ok(header.len() + path.len() + len) {
        process::abort();
    }
    sys::set_errno(errno);
}
