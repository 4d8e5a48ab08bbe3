//! Files that are read again when they change: certificates, keys and tokens.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use tokio::{task::JoinHandle, time::MissedTickBehavior};

/// How often the files are looked at. They are few and small, and reading them is the one way to see a change on every
/// file system, also where they are links that are replaced, as in the volumes of Kubernetes.
const INTERVAL: Duration = Duration::from_secs(1);

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

type Apply = Box<dyn FnMut() -> anyhow::Result<()> + Send>;

/// What is read from files, and what to do when they change.
#[derive(Default)]
pub(crate) struct Reloader {
    watched: Vec<Watched>,
}

struct Watched {
    flag: &'static str,
    files: Vec<PathBuf>,
    /// What was in the files when they were looked at last.
    seen: Vec<Option<Vec<u8>>>,
    apply: Apply,
}

impl Watched {
    fn look(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
        files.iter().map(|file| fs::read(file).ok()).collect()
    }

    /// Applies a change, once. What cannot be used is said, and tried again when it changes again.
    fn check(&mut self) {
        let now = Self::look(&self.files);
        if now == self.seen {
            return;
        }
        self.seen = now;
        let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
        let (flag, files) = (self.flag, files.join(", "));
        match (self.apply)() {
            Ok(()) => tracing::info!(flag, files, "A file has changed and was read again."),
            Err(error) => tracing::error!(
                flag,
                files,
                error = format!("{error:#}"),
                "A file has changed and cannot be used; what it held before stays in force. Repair it: it is read again \
                 when it changes.",
            ),
        }
    }
}

impl Reloader {
    /// Has `apply` run whenever one of `files` changes. A file counts as it is now.
    pub(crate) fn watch(
        &mut self,
        flag: &'static str,
        files: Vec<PathBuf>,
        apply: impl FnMut() -> anyhow::Result<()> + Send + 'static,
    ) {
        let seen = Watched::look(&files);
        self.watched.push(Watched { flag, files, seen, apply: Box::new(apply) });
    }

    /// Looks at the files from now on, until the guard is dropped.
    pub(crate) fn start(self) -> Reloading {
        Reloading(tokio::spawn(self.run()))
    }

    async fn run(mut self) {
        if self.watched.is_empty() {
            return;
        }
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Disks can be slow.
            let checked = tokio::task::spawn_blocking(move || {
                self.watched.iter_mut().for_each(Watched::check);
                self
            });
            match checked.await {
                Ok(same) => self = same,
                Err(error) => {
                    tracing::error!(%error, "Files are no longer looked at: restart the server to read them again.");
                    return;
                }
            }
        }
    }
}

/// Files that are looked at; dropping it ends that.
pub(crate) struct Reloading(JoinHandle<()>);

impl Drop for Reloading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    #[test]
    fn a_change_is_applied_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("tokens.csv");
        fs::write(&file, "one").expect("written");
        let applied = Arc::new(AtomicUsize::new(0));
        let count = applied.clone();
        let mut reloader = Reloader::default();
        let same = file.clone();
        reloader.watch("--token-auth-file", vec![file.clone()], move || {
            count.fetch_add(1, Ordering::Relaxed);
            read_text(&same).map(drop)
        });
        let mut check = |expected: usize| {
            reloader.watched[0].check();
            assert_eq!(applied.load(Ordering::Relaxed), expected);
        };
        check(0);
        fs::write(&file, "two").expect("written");
        check(1);
        check(1);
        fs::remove_file(&file).expect("removed");
        check(2);
        check(2);
        // Replaced as Kubernetes replaces the files of its volumes.
        let other = directory.path().join("other");
        fs::write(&other, "two").expect("written");
        fs::rename(&other, &file).expect("replaced");
        check(3);
    }
}
