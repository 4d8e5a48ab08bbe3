//! A replica of the log, in memory.
//!
//! A [`Replica`] loads all keys of a [`concord_store::Store`], follows every commit after them in one
//! stream and answers all reads from what it has: at the newest revision, at an older one, or
//! consistently with the store. Because one stream feeds everything, all keys share one order of
//! revisions, and whoever has seen revision `n` here has seen everything up to `n`.
//!
//! * Reads work on a [`Snapshot`]: immutable, cheap to clone, valid for as long as it is held. No
//!   reader takes a lock, and nothing has to be checked again afterwards.
//! * A [`Subscription`] is given every change in its [`Scope`], in revision order, with the previous
//!   value, and is told when that is no longer possible.
//! * A [`View`] is state derived from the log, brought up to date by the same stream.
//!
//! # What comes before what
//!
//! For each revision `n`: first every view has applied it, then it is in the buffer of every
//! subscription it concerns, and only then is a snapshot of revision `n` (or newer) published. So
//! after [`Replica::newest`] returned revision `n`, every view has seen everything up to `n`, and a
//! subscription that has nothing pending has been given everything up to `n`.
//!
//! # What it must never do
//!
//! Lose or invent a change, give out a revision partly, hold up the stream or one reader for
//! another, interpret a key or a value, or pretend that a store it has not loaded yet is empty.
//!
//! Start with [`Replica`], then [`Snapshot`] and [`Subscription`].

mod applier;
mod backoff;
mod config;
mod consistent;
mod error;
mod event;
mod feed;
mod history;
mod kept;
mod live;
mod packed;
mod prefix;
mod record;
mod replica;
mod ring;
mod shared;
mod snapshot;
mod state;
mod subscription;
mod unpacked;
mod view;
mod window;

pub use config::Config;
pub use error::{Closed, Error};
pub use event::{Batch, Entry, Event, EventKind, Scope};
pub use replica::Replica;
pub use shared::{Phase, Status};
pub use snapshot::{Entries, Page, Snapshot};
pub use subscription::Subscription;
pub use view::View;
