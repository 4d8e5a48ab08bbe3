//! The real functions and the few constants of Linux needed here. The `libc` crate is not at hand in a
//! crate that a build script compiles.

use std::{
    ffi::{CStr, c_char, c_int, c_long, c_uint, c_void},
    mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

pub(crate) const AT_FDCWD: c_int = -100;
pub(crate) const O_CREAT: c_int = 0o100;
pub(crate) const O_TRUNC: c_int = 0o1000;
pub(crate) const O_RDWR: c_int = 0o2;
pub(crate) const O_APPEND: c_int = 0o2000;
pub(crate) const O_WRONLY: c_int = 0o1;
pub(crate) const O_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const PATH_MAX: usize = 4096;
pub(crate) const PROT_READ_WRITE: c_int = 3;
pub(crate) const MAP_SHARED: c_int = 1;
pub(crate) const SEEK_CUR: c_int = 1;
const RTLD_NEXT: *mut c_void = ptr::without_provenance_mut(usize::MAX);
/// CLOCK_REALTIME and CLOCK_REALTIME_COARSE.
pub(crate) const WALL_CLOCKS: [c_int; 2] = [0, 5];
const ENOSYS: c_int = 38;

/// One piece of a vectored write.
#[repr(C)]
pub(crate) struct IoVec {
    pub(crate) base: *const c_void,
    pub(crate) len: usize,
}

/// A moment, or a time.
#[repr(C)]
pub(crate) struct TimeSpec {
    pub(crate) seconds: i64,
    nanos: c_long,
}

unsafe extern "C" {
    safe fn __errno_location() -> *mut c_int;
    safe fn lseek64(fd: c_int, offset: i64, whence: c_int) -> i64;
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn getenv(name: *const c_char) -> *const c_char;
    fn readlink(path: *const c_char, buf: *mut c_char, len: usize) -> isize;
    fn getcwd(buf: *mut c_char, len: usize) -> *mut c_char;
    fn nanosleep(request: *const TimeSpec, remaining: *mut TimeSpec) -> c_int;
    fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
}

/// A function of the next library in line, found on first use.
pub(crate) struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The function, or `None` with errno set if this libc has none.
    pub(crate) fn get(&self) -> Option<ptr::NonNull<c_void>> {
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: the name is a C string, and RTLD_NEXT is a valid handle for a loaded library.
            found = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) };
            self.found.store(found, Ordering::Relaxed);
        }
        if found.is_null() {
            set_errno(ENOSYS);
        }
        ptr::NonNull::new(found)
    }
}

/// Declares functions that call the real ones and return -1 where there is none.
macro_rules! real {
    ($($name:ident ( $($arg:ident : $ty:ty),* ) -> $ret:ty;)*) => { $(
        /// # Safety
        ///
        /// As for the libc function of the same name.
        pub(crate) unsafe fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: every name declared here is given to CStr with its terminating zero.
            static REAL: Real = Real::new(unsafe {
                CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
            });
            let Some(found) = REAL.get() else { return -1 };
            // SAFETY: libc's function of this name has this signature.
            let call: unsafe extern "C" fn($($ty),*) -> $ret = unsafe { mem::transmute(found) };
            // SAFETY: the caller upholds what the function requires.
            unsafe { call($($arg),*) }
        }
    )* };
}

real! {
    clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
    open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    openat64(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    write(fd: c_int, buf: *const c_void, len: usize) -> isize;
    pwrite64(fd: c_int, buf: *const c_void, len: usize, offset: i64) -> isize;
    writev(fd: c_int, vector: *const IoVec, count: c_int) -> isize;
    pwritev64(fd: c_int, vector: *const IoVec, count: c_int, offset: i64) -> isize;
    ftruncate64(fd: c_int, len: i64) -> c_int;
    fallocate64(fd: c_int, mode: c_int, offset: i64, len: i64) -> c_int;
    fsync(fd: c_int) -> c_int;
    fdatasync(fd: c_int) -> c_int;
    unlink(path: *const c_char) -> c_int;
    unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int;
    rename(from: *const c_char, to: *const c_char) -> c_int;
}

pub(crate) fn errno() -> c_int {
    // SAFETY: libc returns the valid address of this thread's errno.
    unsafe { *__errno_location() }
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *__errno_location() = errno };
}

/// Where the next plain write to this descriptor goes.
pub(crate) fn position(fd: c_int) -> i64 {
    lseek64(fd, 0, SEEK_CUR)
}

/// A variable of the environment the process was started with.
pub(crate) fn env(name: &str) -> Option<&'static CStr> {
    let mut zero_terminated = [0_u8; 64];
    zero_terminated.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    // SAFETY: the buffer is longer than any name of the layout, so it ends with a zero; what getenv
    // returns lives as long as nobody sets that variable, and only our own tests know its name.
    let value = unsafe { getenv(zero_terminated.as_ptr().cast()) };
    // SAFETY: a non-null result of getenv is a C string.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Where a symbolic link points, written into `buf`.
pub(crate) fn link_target<'a>(link: &CStr, buf: &'a mut [u8; PATH_MAX]) -> Option<&'a [u8]> {
    // SAFETY: the link is a C string and the buffer as long as said.
    let len = unsafe { readlink(link.as_ptr(), buf.as_mut_ptr().cast(), buf.len()) };
    buf.get(..usize::try_from(len).ok()?)
}

/// The working directory, written into `buf`.
pub(crate) fn working_dir(buf: &mut [u8; PATH_MAX]) -> Option<&[u8]> {
    // SAFETY: the buffer is as long as said.
    let cwd = unsafe { getcwd(buf.as_mut_ptr().cast(), buf.len()) };
    if cwd.is_null() { None } else { CStr::from_bytes_until_nul(buf).ok().map(CStr::to_bytes) }
}

/// Sleeps through signals, for the whole time.
pub(crate) fn sleep_micros(micros: u64) {
    let nanos = c_long::try_from((micros % 1_000_000) * 1000).unwrap_or(0);
    let mut left = TimeSpec { seconds: i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX), nanos };
    // SAFETY: both pointers are to a valid timespec, which may be one and the same.
    while unsafe { nanosleep(&raw const left, &raw mut left) } == -1 && left.seconds + left.nanos > 0 {}
}

/// Maps the beginning of a file, shared with whoever else maps or writes it.
pub(crate) fn map_shared(path: &CStr, len: usize) -> Option<ptr::NonNull<c_void>> {
    // SAFETY: the path is a C string; a missing mode does not matter without O_CREAT.
    let fd = unsafe { open64(path.as_ptr(), O_RDWR | O_CLOEXEC, 0) };
    if fd < 0 {
        return None;
    }
    // SAFETY: a fresh mapping of an open file at an address of the kernel's choice; it is never unmapped.
    let address = unsafe { mmap(ptr::null_mut(), len, PROT_READ_WRITE, MAP_SHARED, fd, 0) };
    if address.addr() == usize::MAX { None } else { ptr::NonNull::new(address) }
}
