//! What is too large to be stored, known before work is done on it.

use std::sync::atomic::{AtomicBool, Ordering};

use concord_meta::Status;
use concord_store::MAX_REQUEST_BYTES;
use serde_json::Value;

use crate::{Context, Object};

/// Whether what a request makes is too large for every store. To find out who owns what in hundreds of thousands of list
/// items takes seconds and hundreds of megabytes; what nobody stores is not worth that. Whether it is valid is told before
/// that it is too large, as upstream does, whose store says so last.
#[derive(Debug, Default)]
pub(super) struct Size {
    is_too_large: AtomicBool,
}

impl Size {
    /// Whether a store may take an object. What was found out last is remembered.
    pub(super) fn fits(&self, context: &Context, object: &Object) -> bool {
        // What is only tried is never stored. The status may not be taken from the client.
        let taken = object.iter().filter(|(name, _)| *name != "status");
        let mut left = MAX_REQUEST_BYTES;
        let fits =
            context.dry_run || taken.into_iter().all(|(name, value)| fits(name.len(), value, &mut left));
        self.is_too_large.store(!fits, Ordering::Relaxed);
        fits
    }

    /// Refuses what did not fit.
    ///
    /// # Errors
    ///
    /// 413, as the store would say.
    pub(super) fn check(&self) -> Result<(), Status> {
        match self.is_too_large.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Status::request_entity_too_large("etcdserver: request is too large")),
        }
    }
}

/// Takes what a member has at least as JSON from what is left. False if that is not enough.
fn fits(name: usize, value: &Value, left: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len() + 2,
        // Of lists and objects, one bracket; the other stands for the comma that the last of them has not.
        _ => 1,
    };
    let Some(rest) = left.checked_sub(name + own) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(1, item, left)),
        Value::Object(members) => members.iter().all(|(name, member)| fits(name.len() + 4, member, left)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use concord_merge::apply::Time;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_stored_is_refused_and_nothing_else() {
        let context = Context::of_the_server(Time { unix: 0 });
        let mut dry_run = Context::of_the_server(Time { unix: 0 });
        dry_run.dry_run = true;
        let code = |context: &Context, object: Value| {
            let size = Size::default();
            let fits = size.fits(context, object.as_object().expect("an object"));
            assert_eq!(fits, size.check().is_ok());
            size.check().map_err(|status| status.code)
        };
        let items =
            |count: usize| -> Value { (0..count).map(|n| json!({"name": format!("n{n:06}")})).collect() };
        assert_eq!(code(&context, json!({"spec": items(160_000)})), Err(413));
        assert_eq!(code(&context, json!({"status": items(160_000)})), Ok(()));
        assert_eq!(code(&dry_run, json!({"spec": items(160_000)})), Ok(()));
        let fits = json!({"a": "x".repeat(MAX_REQUEST_BYTES - 3)});
        assert_eq!(code(&context, fits), Ok(()));
        assert_eq!(code(&context, json!({"a": "x".repeat(MAX_REQUEST_BYTES)})), Err(413));
    }
}
