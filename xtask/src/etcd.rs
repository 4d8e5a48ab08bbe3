//! The real etcd that tests run. It is installed from Debian's packages if it is not there, and never
//! started as a service: tests start their own, on loopback, in temporary directories.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{is_root, on_path, say, step::run};

/// Asked by Debian's packages before they start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// "Forbidden by policy."
const DENY: &str = "#!/bin/sh\nexit 101\n";

/// Makes sure that tests find an etcd.
pub(crate) fn ensure() -> Result<(), String> {
    if let Some(binary) = env::var_os("CONCORD_ETCD") {
        let binary = PathBuf::from(binary);
        if !binary.is_file() {
            return Err(format!("CONCORD_ETCD names {}, which is not a file", binary.display()));
        }
        say(&format!("etcd: {} (from CONCORD_ETCD)", binary.display()));
        return Ok(());
    }
    if !on_path("etcd") {
        install()?;
    }
    say("etcd: found on PATH");
    Ok(())
}

fn install() -> Result<(), String> {
    let by_hand = "install etcd yourself (on Debian: the package etcd-server), or set CONCORD_ETCD to the \
                   path of an etcd binary (3.4 or newer), then run this again";
    if !on_path("apt-get") {
        return Err(format!("the tests need etcd, and this system has no apt-get: {by_hand}"));
    }
    if !is_root() {
        return install_with_sudo(by_hand);
    }
    let failed =
        |error: String| format!("the tests need etcd, and it could not be installed ({error}): {by_hand}");
    let _policy = Policy::forbid(Path::new(POLICY)).map_err(|error| failed(format!("{POLICY}: {error}")))?;
    // Package lists of a fresh machine are empty or old; a failure here need not be fatal.
    if let Err(error) = run("package lists", &mut apt_get(&["update"])) {
        say(&error);
    }
    let packages = ["install", "--yes", "--no-install-recommends", "etcd-server"];
    run("installing etcd-server", &mut apt_get(&packages)).map_err(failed)?;
    keep_stopped();
    if on_path("etcd") { Ok(()) } else { Err(failed("the package brought no etcd".to_owned())) }
}

/// The whole task once more, as root: everything that was said about services holds there, too.
fn install_with_sudo(by_hand: &str) -> Result<(), String> {
    let ourselves = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    if !on_path("sudo") {
        return Err(format!("the tests need etcd, and installing it needs root or sudo: {by_hand}"));
    }
    let mut sudo = Command::new("sudo");
    // Never wait for a password nobody is there to type.
    sudo.arg("--non-interactive").arg(ourselves).arg("setup");
    run("installing etcd-server as root", &mut sudo).map_err(|error| format!("{error}; {by_hand}"))
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Not even the next boot shall start it.
fn keep_stopped() {
    if on_path("systemctl") {
        let masked = Command::new("systemctl").args(["mask", "etcd.service"]).status();
        if !masked.is_ok_and(|status| status.success()) {
            say("etcd.service could not be masked: it may start at the next boot");
        }
    }
}

/// A policy file that forbids starting services, for as long as this value lives.
struct Policy {
    path: PathBuf,
    before: Option<(Vec<u8>, fs::Permissions)>,
}

impl Policy {
    fn forbid(path: &Path) -> io::Result<Self> {
        let before = match fs::read(path) {
            Ok(content) => Some((content, fs::metadata(path)?.permissions())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let policy = Self { path: path.to_owned(), before };
        fs::write(path, DENY)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        Ok(policy)
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        let restored = match self.before.take() {
            Some((content, permissions)) => {
                fs::write(&self.path, content).and_then(|()| fs::set_permissions(&self.path, permissions))
            }
            None => fs::remove_file(&self.path),
        };
        if let Err(error) = restored {
            say(&format!("{} could not be restored: {error}", self.path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        env::temp_dir().join(format!("concord-xtask-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_policy_that_was_not_there_is_gone_afterwards() {
        let path = scratch("new");
        let policy = Policy::forbid(&path).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), DENY);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o111, 0o111);
        drop(policy);
        assert!(!path.exists());
    }

    #[test]
    fn a_policy_that_was_there_is_back_afterwards() {
        let path = scratch("old");
        fs::write(&path, "exit 0").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("set");
        drop(Policy::forbid(&path).expect("written"));
        assert_eq!(fs::read_to_string(&path).expect("read"), "exit 0");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        fs::remove_file(&path).expect("removed");
    }
}
