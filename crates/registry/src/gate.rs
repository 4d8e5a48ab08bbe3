use async_trait::async_trait;
use concord_meta::Status;
use concord_store::Txn;

/// Decides whether this server may write at all, and what it may write.
///
/// Every transaction of the registry passes it last of all, whoever began the write: clients, controllers, and whatever
/// is written along with something else. So what it adds to the transaction holds for everything that is stored.
#[async_trait]
pub trait Gate: Send + Sync + 'static {
    /// Adds what must hold for the transaction to be committed. May wait until there is something that can hold. When the
    /// transaction turns out not to hold, the write is decided anew and comes back.
    ///
    /// # Errors
    ///
    /// Why this server cannot write that now.
    async fn pass(&self, txn: &mut Txn) -> Result<(), Status>;
}
