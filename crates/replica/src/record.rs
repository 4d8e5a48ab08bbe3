use bytes::Bytes;
use concord_store::Revision;

use crate::{Entry, Event, EventKind, kept::Kept};

/// An [`Event`] as the history keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) revision: Revision,
    kind: RecordKind,
}

#[derive(Debug, Clone)]
enum RecordKind {
    Created(Kept),
    Modified { current: Kept, previous: Kept },
    Deleted { previous: Kept },
}

impl Record {
    /// A record of an event; `superseded` says how the value it replaced is kept, given what replaced it.
    pub(crate) fn new(event: &Event, superseded: impl FnOnce(&Entry, Option<&Kept>) -> Kept) -> Self {
        let kind = match &event.kind {
            EventKind::Created(current) => RecordKind::Created(Kept::new(current)),
            EventKind::Modified { current, previous } => {
                let current = Kept::new(current);
                let previous = superseded(previous, Some(&current));
                RecordKind::Modified { current, previous }
            }
            EventKind::Deleted { previous } => RecordKind::Deleted { previous: superseded(previous, None) },
        };
        Self { revision: event.revision, kind }
    }

    /// The key that changed.
    pub(crate) fn key(&self) -> &Bytes {
        match &self.kind {
            RecordKind::Created(kept)
            | RecordKind::Modified { current: kept, .. }
            | RecordKind::Deleted { previous: kept } => kept.key(),
        }
    }

    /// The value from this revision on; `None` if it was deleted.
    pub(crate) fn current(&self) -> Option<&Kept> {
        match &self.kind {
            RecordKind::Created(current) | RecordKind::Modified { current, .. } => Some(current),
            RecordKind::Deleted { .. } => None,
        }
    }

    /// The value until this revision; `None` if there was none.
    pub(crate) fn previous(&self) -> Option<&Kept> {
        match &self.kind {
            RecordKind::Created(_) => None,
            RecordKind::Modified { previous, .. } | RecordKind::Deleted { previous } => Some(previous),
        }
    }

    /// The event, with whole values.
    pub(crate) fn event(&self) -> Event {
        let kind = match &self.kind {
            RecordKind::Created(current) => EventKind::Created(current.entry()),
            RecordKind::Modified { current, previous } => {
                EventKind::Modified { current: current.entry(), previous: previous.entry() }
            }
            RecordKind::Deleted { previous } => EventKind::Deleted { previous: previous.entry() },
        };
        Event { revision: self.revision, kind }
    }
}
