//! What is done about a migration next, as a function of what is known.

use concord_store::Revision;

use crate::{Census, Row, agreement::Writers};

/// What the owner of a migration asked for, besides the migration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Orders {
    /// Nothing is to be written for now.
    pub is_paused: bool,
    /// It is to end as it is.
    pub is_cancelled: bool,
    /// It is only to be counted.
    pub is_dry_run: bool,
    /// At most so many objects are to be written in a second.
    pub rate: Option<f64>,
}

/// A pass over all objects, begun under an agreement.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The form that objects are to have.
    pub target: Row,
    /// Who agreed on it.
    pub fingerprint: u64,
    /// The newest revision when it began: taken after the agreement.
    pub checkpoint: Revision,
    /// How far it is.
    pub stage: Stage,
}

/// How far a pass is.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// Not all objects have been looked at.
    Walking,
    /// All have.
    Walked {
        /// So many could not be written, for good.
        failed: u64,
        /// So many could not be written for now.
        deferred: u64,
    },
    /// And what is stored was counted.
    Counted {
        /// So many could not be written, for good.
        failed: u64,
        /// So many could not be written for now.
        deferred: u64,
        /// What was found.
        census: Census,
    },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// End it, since its owner says so.
    Cancel,
    /// Write nothing until its owner says so.
    Pause,
    /// Write nothing until the servers agree.
    Await(String),
    /// Begin a pass.
    Begin,
    /// Go on with it.
    Walk,
    /// Count what is stored.
    Count,
    /// Go over everything once more, after a while: something could not be written for now, or has come since.
    Again,
    /// Say that it is done, and what was found.
    Succeed(Census),
    /// Say that it is not, and what was found.
    Fail(Census),
    /// Say what would be done.
    Report(Census),
}

/// What is done next about a migration with these orders, while the servers say this, in this pass.
pub fn next(orders: Orders, writers: &Writers, run: Option<&Run>) -> Next {
    if orders.is_cancelled {
        return Next::Cancel;
    }
    if orders.is_paused {
        return Next::Pause;
    }
    let agreed = match writers {
        Writers::Disagree(why) => return Next::Await(why.clone()),
        Writers::Agree(agreed) => agreed,
    };
    // An agreement that is younger than the checkpoint was not there all the time: somebody may have written otherwise
    // behind our back.
    let held = |run: &&Run| run.target == agreed.target && agreed.since <= run.checkpoint;
    let Some(run) = run.filter(held) else { return Next::Begin };
    match &run.stage {
        Stage::Walking if orders.is_dry_run => Next::Count,
        Stage::Walking => Next::Walk,
        Stage::Walked { .. } => Next::Count,
        // What is known about the servers has to be as new as what was counted.
        Stage::Counted { census, .. } if agreed.revision < census.revision => {
            Next::Await("the newest state of the servers is not known yet".to_owned())
        }
        Stage::Counted { census, .. } if orders.is_dry_run => Next::Report(census.clone()),
        Stage::Counted { failed, deferred, census } => match (census.others(&run.target), failed, deferred) {
            (0, ..) => Next::Succeed(census.clone()),
            (others, failed, 0) if others <= *failed => Next::Fail(census.clone()),
            _ => Next::Again,
        },
    }
}

#[cfg(test)]
mod tests;
