//! API priority and fairness: which requests run and which wait when there are more than the server can do at once.
//!
//! FlowSchemas say which priority level a request belongs to, and to which flow in it: that of its user, or of its
//! namespace. A priority level has a part of the server's seats. A request takes a seat while it runs; when its level has
//! none left it waits in one of the level's queues, and queues take turns by how much they have used. So a flood fills its
//! own queues, and whoever asks for little is served soon.
//!
//! [`FlowController`] is what a server asks. It is kept up to date by [`FlowView`], which the replica feeds: the objects
//! are configuration, and they are what is stored. `fair.rs` is the decision itself, a pure function of time.
//!
//! Unlike upstream, a level that is busy borrows seats of those that are not at once, rather than every ten seconds, and
//! gets its own back at once. A list takes a seat for every 100 kB that it reads, as upstream's lists from memory do; other
//! requests take one, whoever watches what they write.
//!
//! The crate never looks into requests beyond what authorization knows, and never makes anybody wait while there is room.

mod controller;
mod estimate;
mod fair;
mod object;
mod rule;
mod shard;
mod view;

pub use controller::{FlowController, Limits};
pub use estimate::AnswerSizes;
pub use fair::{Begun, Level, LevelId, Place, Rejected, Scheduler};
pub use object::{Distinguisher, FlowSchema, PriorityLevel, Queuing};
pub use view::FlowView;
