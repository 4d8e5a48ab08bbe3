//! Reads the log while it is written, and knows what a migration may do to it and what not.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use concord_encryption::{Configuration, Encryption};
use concord_store::{Change, Commit, Error, Revision, Store as _};
use concord_store_etcd::EtcdStore;
use concord_store_sealed::{Keyring, Places};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

/// What the keys of the objects begin with.
pub(super) const FOOS: &str = "/registry/example.com/foos/";

/// The version that an object is stored in, and what it is encrypted with.
pub(super) type Form = (String, String);

/// An object as it was last stored.
struct Kept {
    form: Form,
    /// Without its version.
    object: Value,
}

/// Everything that happened to the objects so far.
pub(super) struct Witness {
    keyring: Keyring,
    live: BTreeMap<String, Kept>,
    /// How many there are of each form.
    forms: BTreeMap<Form, usize>,
    /// Of all objects that there ever were.
    uids: BTreeSet<String>,
    /// How many objects there were of each form, after each revision at which that changed.
    counts: Vec<(Revision, BTreeMap<Form, usize>)>,
    /// The number in an object that was stored at a revision.
    stored: HashMap<(String, Revision), u64>,
    deleted: BTreeSet<String>,
    /// How often an object was stored again without any change but its form.
    pub(super) rewritten: usize,
    pub(super) seen: Revision,
    complaint: Option<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Witness {
    pub(super) fn new(configuration: &str) -> Self {
        let configuration = Configuration::read(configuration.as_bytes()).expect("a configuration");
        let encryption = Encryption::new(&configuration).expect("keys");
        Self {
            keyring: Keyring::new(encryption, Places::new("/registry/", [])),
            live: BTreeMap::new(),
            forms: BTreeMap::new(),
            uids: BTreeSet::new(),
            counts: Vec::new(),
            stored: HashMap::new(),
            deleted: BTreeSet::new(),
            rewritten: 0,
            seen: 1,
            complaint: None,
        }
    }

    /// Fails if something happened that may not.
    pub(super) fn agrees(&self) {
        assert_eq!(self.complaint, None);
    }

    /// How many objects there were of each form at a revision.
    pub(super) fn forms_at(&self, at: Revision) -> BTreeMap<Form, usize> {
        let until = self.counts.partition_point(|(revision, _)| *revision <= at);
        until.checked_sub(1).map(|last| self.counts[last].1.clone()).unwrap_or_default()
    }

    /// How many objects there are whose names begin like this.
    pub(super) fn live(&self, prefix: &str) -> usize {
        self.live.keys().filter(|name| name.starts_with(prefix)).count()
    }

    /// Whether an object was stored at a revision with this number in it.
    pub(super) fn saw(&self, name: &str, revision: Revision, count: u64) -> bool {
        self.stored.get(&(name.to_owned(), revision)) == Some(&count)
    }

    pub(super) fn saw_the_end_of(&self, name: &str) -> bool {
        self.deleted.contains(name) && !self.live.contains_key(name)
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), String> {
        for change in &commit.changes {
            let key = String::from_utf8_lossy(change.key()).into_owned();
            let Some(name) = key.strip_prefix(FOOS) else { continue };
            match change {
                Change::Put(entry) => self.put(name, &entry.key, &entry.value, commit.revision)?,
                Change::Delete { .. } => self.delete(name, commit.revision)?,
            }
            self.counts.push((commit.revision, self.forms.clone()));
        }
        self.seen = commit.revision;
        Ok(())
    }

    fn put(&mut self, name: &str, key: &Bytes, value: &Bytes, revision: Revision) -> Result<(), String> {
        let kept = self.keyring.inspect(key, value);
        let mut object: Value = serde_json::from_slice(&kept.plain)
            .map_err(|error| format!("{name} at {revision} cannot be read: {error}"))?;
        let form = (text(&object["apiVersion"].take()), kept.seal);
        let uid = text(&object["metadata"]["uid"]);
        self.stored.insert((name.to_owned(), revision), number(&object));
        let is_new = self.uids.insert(uid.clone());
        let Some(before) = self.live.get(name) else {
            self.keep(name, form, object);
            return if is_new {
                Ok(())
            } else {
                Err(format!("{name} at {revision} came back from the dead"))
            };
        };
        if text(&before.object["metadata"]["uid"]) != uid {
            return Err(format!("{name} at {revision} is somebody else now"));
        }
        match before.object == object {
            true if before.form == form => {
                return Err(format!("{name} was stored at {revision} without need, in {form:?}"));
            }
            true => self.rewritten += 1,
            false if name.starts_with("static-") => {
                return Err(format!("{name} was changed at {revision}: {} {object}", before.object));
            }
            false if number(&object) <= number(&before.object) => {
                return Err(format!("{name} at {revision} went back to {}", number(&object)));
            }
            false => {}
        }
        self.keep(name, form, object);
        Ok(())
    }

    fn keep(&mut self, name: &str, form: Form, object: Value) {
        *self.forms.entry(form.clone()).or_default() += 1;
        let before = self.live.insert(name.to_owned(), Kept { form, object });
        self.forget(before);
    }

    fn forget(&mut self, before: Option<Kept>) {
        let Some(count) = before.and_then(|before| self.forms.get_mut(&before.form)) else { return };
        *count -= 1;
        self.forms.retain(|_, count| *count > 0);
    }

    fn delete(&mut self, name: &str, revision: Revision) -> Result<(), String> {
        if !name.ends_with("-brief") {
            return Err(format!("{name} was lost at {revision}"));
        }
        let before = self.live.remove(name);
        self.forget(before);
        self.deleted.insert(name.to_owned());
        Ok(())
    }
}

fn number(object: &Value) -> u64 {
    object["spec"]["count"].as_u64().unwrap_or_default()
}

/// Has the witness see everything that is committed, from the beginning on.
pub(super) fn follow(store: Arc<EtcdStore>, witness: Arc<Mutex<Witness>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let seen = witness.lock().seen;
            let mut commits = store.follow(seen);
            while let Some(next) = commits.next().await {
                let mut witness = witness.lock();
                let judged = match next {
                    Ok(commits) => commits.iter().try_for_each(|commit| witness.commit(commit)),
                    Err(Error::Compacted { oldest }) => Err(format!("blind until {oldest}")),
                    Err(_) => break,
                };
                if let Err(complaint) = judged {
                    witness.complaint.get_or_insert(complaint);
                    return;
                }
            }
        }
    })
}
