//! One object, written again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_codec::{FieldValidation, PatchType};
use concord_meta::Status;
use concord_registry::{Kept, ObjectName, Part, PatchRequest, Resource};
use concord_store::{KeyValue, Revision, Scan};
use concord_store_sealed::Keyring;

use crate::{
    Row,
    audit::Sent,
    census::{form, is_lost},
    shared::Shared,
};

/// How often one object is tried before the others go first.
const TRIES: u32 = 6;

/// The first pause after a failure; the next ones are twice as long each.
const PAUSE: Duration = Duration::from_millis(50);

/// How often to look at least, during a pause, whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// The longest pause that a server may ask for.
const LONGEST: Duration = Duration::from_secs(30);

/// What became of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was written.
    Written(Duration),
    /// Somebody else did that.
    Current,
    /// It is gone.
    Gone,
    /// It cannot be written.
    Failed(String),
    /// It cannot be written for now.
    Deferred(String),
    /// Nobody wants it any more.
    Unwanted,
}

impl Outcome {
    /// What metrics call it, if they count it.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Written(_) => Some("migrated"),
            Self::Current => Some("current"),
            Self::Gone => Some("gone"),
            Self::Failed(_) => Some("failed"),
            Self::Deferred(_) => Some("deferred"),
            Self::Unwanted => None,
        }
    }
}

/// An object as it was read: what has not been written since does not have to be read again to see that it is stale.
struct Read {
    keyring: Arc<Keyring>,
    entry: KeyValue,
}

impl std::fmt::Debug for Read {
    // Not what it says.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Read").field("revision", &self.entry.mod_revision).finish_non_exhaustive()
    }
}

impl Kept for Read {
    fn is_stale(&self, revision: Revision) -> Option<bool> {
        let Self { keyring, entry } = self;
        (revision == entry.mod_revision).then(|| keyring.inspect(&entry.key, &entry.value).is_stale)
    }
}

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    /// The object has changed, or is gone: look at it again.
    Changed,
    /// It may go well later; not before this time.
    Later(Duration),
    /// It will not go well.
    Never,
}

fn meaning(status: &Status, tries: u32) -> Meaning {
    match status.code {
        404 | 409 => Meaning::Changed,
        429 | 500..=599 => {
            let asked = Duration::from_secs(status.retry_after_seconds().unwrap_or_default().into());
            Meaning::Later(asked.max(PAUSE * 2_u32.pow(tries)).min(LONGEST))
        }
        _ => Meaning::Never,
    }
}

impl Shared {
    /// Writes an object that is kept in another form than `target`, as long as that is wanted.
    pub(crate) async fn rewrite(
        &self,
        resource: &Resource,
        mut entry: KeyValue,
        target: &Row,
        is_wanted: &(dyn Fn() -> bool + Send + Sync),
    ) -> Outcome {
        let (mut last, mut is_readable) = (String::new(), true);
        for tries in 0..TRIES {
            let begin = Instant::now();
            let status = match self.write(resource, &entry).await {
                // A write that changed nothing: the server does not store what it said it would.
                Ok(written) if written == entry.mod_revision => {
                    Status::internal_error("the object was not stored anew: this server is behind")
                }
                Ok(_) => return Outcome::Written(begin.elapsed()),
                Err(status) => status,
            };
            if let (429 | 503, Some(storage)) = (status.code, resource.storage()) {
                self.load(storage).was_too_much();
            }
            match meaning(&status, tries) {
                Meaning::Changed => {}
                Meaning::Later(pause) => rest(pause, is_wanted).await,
                Meaning::Never => return Outcome::Failed(status.message),
            }
            if !is_wanted() {
                return Outcome::Unwanted;
            }
            last = status.message;
            let keyring = self.config.keyring.as_deref();
            match self.look(&entry.key).await {
                Ok(None) => return Outcome::Gone,
                Ok(Some(found)) if form(keyring, &found.key, &found.value) == *target => {
                    return Outcome::Current;
                }
                Ok(Some(found)) => {
                    is_readable = !is_lost(keyring, &found.key, &found.value);
                    entry = found;
                }
                Err(error) => last = error,
            }
        }
        if is_readable { Outcome::Deferred(last) } else { Outcome::Failed(last) }
    }

    /// The patch of a migrator: it changes nothing, and says of which state it thinks so.
    async fn write(&self, resource: &Resource, entry: &KeyValue) -> Result<Revision, Status> {
        let revision = entry.mod_revision;
        let plural = &resource.names.plural;
        let gone = || Status::service_unavailable(format!("{plural} are not served at the moment"));
        // As it is served now: a definition may have changed.
        let resource = self.config.resources.find(&resource.version, plural).ok_or_else(gone)?;
        let storage = resource.storage().ok_or_else(gone)?;
        let Some(object) = storage.object_name(&entry.key) else {
            return Err(Status::bad_request("the key is not that of an object"));
        };
        let body = format!(r#"{{"metadata":{{"resourceVersion":"{revision}"}}}}"#);
        let name = ObjectName { namespace: object.namespace, name: object.name };
        let mut context = self.context();
        context.together = true;
        context.kept =
            self.config.keyring.clone().map(|keyring| Arc::new(Read { keyring, entry: entry.clone() }) as _);
        let sent = Sent {
            user: &context.user,
            resource: &resource,
            name,
            body: &body,
            received: jiff::Timestamp::now(),
        };
        let request = PatchRequest {
            name,
            part: Part::Main,
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            force: false,
            validation: FieldValidation::Ignore,
        };
        let written = Box::pin(self.registry().patch(&context, &resource, request)).await;
        if let Some(auditing) = self.auditing.get() {
            sent.ended(auditing, &written);
        }
        Ok(written?.item.revision.unwrap_or(revision))
    }

    /// How an object is kept now.
    async fn look(&self, key: &Bytes) -> Result<Option<KeyValue>, String> {
        let page = self.registry().store().scan_kept(Scan::key(key.clone())).await;
        Ok(page.map_err(|error| error.to_string())?.entries.into_iter().next())
    }
}

/// Sleeps, but not on when nobody waits for it any more.
async fn rest(pause: Duration, is_wanted: &(dyn Fn() -> bool + Send + Sync)) {
    let end = tokio::time::Instant::now() + pause;
    while is_wanted() && tokio::time::Instant::now() < end {
        tokio::time::sleep_until(end.min(tokio::time::Instant::now() + LOOK)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use concord_meta::GroupResource;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_ends_when_nobody_wants_what_comes_after_it() {
        let begin = tokio::time::Instant::now();
        rest(LONGEST, &|| true).await;
        assert!(begin.elapsed() >= LONGEST);
        let (begin, asked) = (tokio::time::Instant::now(), AtomicU32::new(0));
        rest(LONGEST, &|| asked.fetch_add(1, Ordering::Relaxed) < 3).await;
        assert!(begin.elapsed() <= LOOK * 4, "{:?}", begin.elapsed());
    }

    #[test]
    fn only_what_will_never_go_well_is_given_up() {
        let resource = GroupResource::new("", "secrets");
        for (status, expected) in [
            (Status::modified(&resource, "a"), Meaning::Changed),
            (Status::not_found(&resource, "a"), Meaning::Changed),
            (Status::internal_error("webhook"), Meaning::Later(PAUSE * 4)),
            (Status::too_many_requests("later", 3), Meaning::Later(Duration::from_secs(3))),
            (Status::too_many_requests("later", 3600), Meaning::Later(LONGEST)),
            (Status::service_unavailable("no"), Meaning::Later(PAUSE * 4)),
            (Status::bad_request("no"), Meaning::Never),
            (Status::forbidden(&resource, "a", "no"), Meaning::Never),
        ] {
            assert_eq!(meaning(&status, 2), expected, "{status:?}");
        }
    }
}
