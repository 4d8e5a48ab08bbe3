//! What is found out about a request before its event begins, by those who find out who makes it.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use parking_lot::Mutex;

tokio::task_local! {
    /// Where those who look at the credentials of a request leave what they have to say.
    static NOTES: AuditNotes;
}

/// Annotations of an event that has not begun.
#[derive(Clone, Default)]
pub(crate) struct AuditNotes(Arc<Mutex<BTreeMap<String, String>>>);

impl AuditNotes {
    /// Does something, and gives what was noted meanwhile.
    pub(crate) async fn during<T>(work: impl Future<Output = T>) -> (T, Self) {
        let notes = Self::default();
        (NOTES.scope(notes.clone(), work).await, notes)
    }

    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        self.0.lock().clone()
    }
}

/// Says something about the request whose credentials are being looked at, for whoever audits it. Nothing happens if
/// nobody does.
pub fn note_for_audit(key: &str, value: &str) {
    let noted = NOTES.try_with(|notes| notes.0.lock().insert(key.to_owned(), value.to_owned()));
    drop(noted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_noted_belongs_to_the_request() {
        note_for_audit("nobody", "listens");
        let ((), notes) = AuditNotes::during(async { note_for_audit("key", "value") }).await;
        assert_eq!(notes.annotations(), BTreeMap::from([("key".to_owned(), "value".to_owned())]));
        let ((), notes) = AuditNotes::during(async {}).await;
        assert!(notes.annotations().is_empty());
    }
}
