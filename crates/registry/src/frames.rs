use std::collections::VecDeque;

use bytes::Bytes;
use concord_codec::EventType;
use concord_store::Revision;
use parking_lot::Mutex;

/// Enough for all watchers of one event to find its frame, however late they are scheduled; those that come
/// later write it again.
const KEPT: usize = 64;

/// The frames of the latest watch events of a resource, so that an event is written once for all its watchers.
#[derive(Debug, Default)]
pub struct Frames(Mutex<VecDeque<Frame>>);

#[derive(Debug)]
struct Frame {
    revision: Revision,
    event: EventType,
    /// The stored bytes the frame was made of: while they are held here, no other value has their address.
    value: Bytes,
    frame: Bytes,
}

impl Frames {
    /// The frame of an event, made if it is not there.
    pub(crate) fn get<E>(
        &self,
        event: EventType,
        value: &Bytes,
        revision: Revision,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let is_it = |kept: &&Frame| {
            kept.revision == revision && kept.event == event && kept.value.as_ptr() == value.as_ptr()
        };
        if let Some(kept) = self.0.lock().iter().rev().find(is_it) {
            return Ok(kept.frame.clone());
        }
        // Not under the lock: two watchers may write the same frame, none waits for another.
        let frame = make()?;
        let mut kept = self.0.lock();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Frame { revision, event, value: value.clone(), frame: frame.clone() });
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(frames: &Frames, event: EventType, value: &Bytes, revision: Revision) -> bool {
        let mut made = false;
        let frame = frames.get(event, value, revision, || {
            made = true;
            Ok::<_, ()>(Bytes::from(format!("{revision}")))
        });
        assert_eq!(frame, Ok(Bytes::from(format!("{revision}"))));
        made
    }

    #[test]
    fn a_frame_is_made_once_while_it_is_among_the_latest() {
        let frames = Frames::default();
        let value = Bytes::from(vec![1]);
        assert!(made(&frames, EventType::Added, &value, 1));
        assert!(!made(&frames, EventType::Added, &value.clone(), 1));
        assert!(made(&frames, EventType::Deleted, &value, 1), "the same object gone is another event");
        assert!(made(&frames, EventType::Added, &Bytes::from(vec![1]), 1), "another object of that revision");
        for revision in 2..2 + KEPT as u64 {
            assert!(made(&frames, EventType::Added, &value, revision));
        }
        assert!(made(&frames, EventType::Added, &value, 1), "forgotten by now");
    }
}
