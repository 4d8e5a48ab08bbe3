//! What happens when something happens that must not.

use std::time::Duration;

use concord_meta::GroupResource;
use tokio::task::JoinSet;

/// How long a migration that panicked rests: it would most likely do so again.
pub(crate) const AFTER_PANIC: Duration = Duration::from_secs(30);

/// Carries something out. False if it panicked; that is logged and harms no other migration. What is dropped before its
/// end leaves the work undone.
pub(crate) async fn survives(
    resource: &GroupResource,
    work: impl Future<Output = ()> + Send + 'static,
) -> bool {
    let mut only = JoinSet::new();
    only.spawn(work);
    match only.join_next().await {
        Some(Err(error)) => {
            tracing::error!(%resource, %error, "A migration ended in an unexpected way.");
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_panics_is_noticed() {
        let resource = GroupResource::new("", "secrets");
        assert!(survives(&resource, async {}).await);
        assert!(!survives(&resource, async { panic!("on purpose") }).await);
    }
}
