//! Builds the preloaded library with the compiler itself, so that every crate which depends on this
//! one finds it ready: under `cargo test`, under nextest, from a cold checkout, without a second cargo.
//!
//! It cannot be the `cdylib` of this package: the same object code would then also be linked into
//! the tests through the `rlib`, and its `write` would replace the one of the test process.

use std::{env, path::PathBuf, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=src/preload");
    println!("cargo::rerun-if-changed=src/layout.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        println!("cargo::rustc-env=CONCORD_FAULTFS_LIBRARY=");
        return;
    }
    let out =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("libconcord_faultfs.so");
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"));
    rustc
        .args(["--crate-name", "concord_faultfs_preload", "--crate-type", "cdylib", "--edition", "2024"])
        // A panic must never unwind into the C caller.
        .args(["-C", "opt-level=2", "-C", "panic=abort"])
        .args(["--target", &env::var("TARGET").expect("cargo sets TARGET")])
        .arg("-o")
        .arg(&out)
        .arg("src/preload/mod.rs");
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut flag = std::ffi::OsString::from("linker=");
        flag.push(linker);
        rustc.arg("-C").arg(flag);
    }
    let status = rustc.status().expect("the compiler that cargo uses can be started");
    assert!(status.success(), "the preloaded library does not compile: {status}");
    println!("cargo::rustc-env=CONCORD_FAULTFS_LIBRARY={}", out.display());
}
