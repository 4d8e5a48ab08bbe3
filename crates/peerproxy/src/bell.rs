//! Wakes all who wait for one thing.

use std::{
    sync::Arc,
    task::{Wake, Waker},
};

use parking_lot::Mutex;

/// Those who wait, each at a place of its own.
///
/// It is a waker itself, for what they wait for: whichever of them asked last, all are woken. Were it only that one, and it does
/// not ask again, since it is gone or its client does not read, then nobody would.
#[derive(Default)]
pub(crate) struct Bell(Mutex<Vec<Option<Waker>>>);

impl Bell {
    /// Has whoever is at this place woken with the next ring.
    pub(crate) fn wait(&self, place: usize, waker: &Waker) {
        let mut waiting = self.0.lock();
        if waiting.len() <= place {
            waiting.resize(place + 1, None);
        }
        match &mut waiting[place] {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Whoever is at this place waits no more.
    pub(crate) fn leave(&self, place: usize) {
        let left = self.0.lock().get_mut(place).and_then(Option::take);
        // Not while the lock is held: it may be the last that is left of a task that has a place here, too.
        drop(left);
    }

    pub(crate) fn ring(&self) {
        let waiting: Vec<Waker> = self.0.lock().iter_mut().filter_map(Option::take).collect();
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}
