//! The embedded engine passes the suite that every engine passes.

use std::sync::Arc;

use concord_store::{Store, conformance};
use concord_store_embedded::{EmbeddedStore, Options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_store_conforms() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut count = 0;
    conformance::run_all(|| {
        count += 1;
        let options = Options::new(dir.path().join(format!("{count}.db")));
        async move { Arc::new(EmbeddedStore::open(&options).expect("a new store opens")) as Arc<dyn Store> }
    })
    .await;
}
