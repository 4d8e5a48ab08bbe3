//! How much memory there is for something, and who has it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// So many bytes for all together.
pub(crate) struct Room {
    most: usize,
    taken: AtomicUsize,
}

/// A part of it, given back when it is dropped.
pub(crate) struct Reserved {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// So many bytes of it, if there are.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reserved> {
        let add = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Reserved { room: self.clone(), bytes })
    }

    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Reserved {
    /// Gives back what is more than this.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let more = self.bytes.saturating_sub(bytes);
        self.bytes -= more;
        self.room.taken.fetch_sub(more, Ordering::Relaxed);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_as_much_as_there_is() {
        let room = Room::new(10);
        let mut large = room.reserve(8).expect("room");
        assert!(room.reserve(3).is_none());
        large.shrink(4);
        large.shrink(9);
        let more = room.reserve(6).expect("room");
        assert_eq!(room.taken(), 10);
        drop((large, more));
        assert_eq!(room.taken(), 0);
    }
}
