//! Clients that write all the time, and remember what they were told.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use concord_store::Revision;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;

use super::super::foos;

/// What a server said that it has done.
pub(super) enum Told {
    Stored { name: String, revision: Revision, count: u64 },
    Deleted(String),
}

#[derive(Default)]
pub(super) struct Writers {
    tasks: JoinSet<()>,
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Vec<Told>>>,
    started: usize,
}

impl Writers {
    /// Writes through a server until it is told to stop, or until that server is gone.
    pub(super) fn start(&mut self, client: Client) {
        self.started += 1;
        let (id, stop, told) = (self.started, self.stop.clone(), self.told.clone());
        self.tasks.spawn(async move {
            let foos = foos(&client, "v1");
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                count += 1;
                let end = if count % 2 == 0 { "-brief" } else { "" };
                if live(&foos, &format!("writer-{id:02}-{count:05}{end}"), &told).await.is_none() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        });
    }

    pub(super) fn told(&self) -> usize {
        self.told.lock().len()
    }

    /// Stops them, and says what they were told.
    pub(super) async fn end(mut self) -> Vec<Told> {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks.shutdown().await;
        std::mem::take(&mut *self.told.lock())
    }
}

/// One object from its beginning to its end, if it is to have one.
async fn live(foos: &Api<DynamicObject>, name: &str, told: &Mutex<Vec<Told>>) -> Option<()> {
    let remember = |object: DynamicObject, count: u64| {
        let revision = object.metadata.resource_version.and_then(|text| text.parse().ok())?;
        told.lock().push(Told::Stored { name: name.to_owned(), revision, count });
        Some(())
    };
    let object = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name}, "spec": {"count": 1}});
    let object = serde_json::from_value(object).ok()?;
    remember(foos.create(&PostParams::default(), &object).await.ok()?, 1)?;
    for count in 2..4 {
        let patch = Patch::Merge(json!({"spec": {"count": count}}));
        remember(foos.patch(name, &PatchParams::default(), &patch).await.ok()?, count)?;
    }
    if name.ends_with("-brief") {
        foos.delete(name, &DeleteParams::default()).await.ok()?;
        told.lock().push(Told::Deleted(name.to_owned()));
    }
    Some(())
}
