//! What is said in a migration about it.

use concord_codec::{FieldValidation, PatchType};
use concord_meta::{Status, options::ReadAt};
use concord_registry::{Object, ObjectName, Part, PatchRequest, UpdateRequest, metadata};
use concord_store::Revision;
use serde_json::{Value, json};

use crate::{
    migration::{Condition, PROGRESS_ANNOTATION, Transition, set},
    progress::Progress,
    shared::{Shared, now},
};

/// How often a write is tried again that somebody else was faster than.
const TRIES: usize = 10;

/// Which migration: one of the same name may be another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Which {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Shared {
    /// Sets conditions, and the checkpoint if there is none yet. False if the migration is gone.
    pub(crate) async fn tell(
        &self,
        which: &Which,
        conditions: &[Condition],
        checkpoint: Option<Revision>,
    ) -> Result<bool, Status> {
        // Version 1alpha1 has another name for it.
        let member = match self.migrations.version.version.as_str() {
            "v1alpha1" => "lastUpdateTime",
            _ => "lastTransitionTime",
        };
        let now = now().to_string();
        let at = Transition { member, now: &now };
        self.change(which, |object| {
            let status = object.entry("status").or_insert_with(|| json!({}));
            let mut all = status["conditions"].as_array().cloned().unwrap_or_default();
            // All of them are set, also if the first one was there already.
            let mut is_new = conditions.iter().filter(|condition| set(&mut all, condition, &at)).count() > 0;
            status["conditions"] = all.into();
            if let Some(revision) =
                checkpoint.filter(|_| status["resourceVersion"].as_str().is_none_or(str::is_empty))
            {
                status["resourceVersion"] = revision.to_string().into();
                is_new = true;
            }
            is_new
        })
        .await
    }

    /// Changes the status of a migration. False if it is gone.
    async fn change(&self, which: &Which, change: impl Fn(&mut Object) -> bool) -> Result<bool, Status> {
        let Some(storage) = self.migrations.storage() else { return Ok(false) };
        let name = ObjectName { namespace: "", name: &which.name };
        let mut tries = 0;
        loop {
            let item = match self.registry().get(storage, name, ReadAt::MostRecent).await {
                Err(status) if status.code == 404 => return Ok(false),
                item => item?,
            };
            let mut object = self.migrations.object(&item)?;
            if metadata(&object).uid() != which.uid {
                return Ok(false);
            }
            if !change(&mut object) {
                return Ok(true);
            }
            let request = UpdateRequest { name, part: Part::Sub("status"), object };
            match self.registry().update(&self.context(), &self.migrations, request).await {
                Err(status) if status.code == 409 && tries < TRIES => tries += 1,
                Err(status) if status.code == 404 => return Ok(false),
                written => return written.map(|_| true),
            }
        }
    }

    /// Says how far a migration is. That it is gone is found out elsewhere.
    pub(crate) async fn show(&self, which: &Which, progress: &Progress) -> Result<(), Status> {
        let text = serde_json::to_string(progress).map_err(Status::internal_error)?;
        let patch: Value =
            json!({"metadata": {"uid": which.uid, "annotations": {PROGRESS_ANNOTATION: text}}});
        let body = patch.to_string();
        let request = PatchRequest {
            name: ObjectName { namespace: "", name: &which.name },
            part: Part::Main,
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            force: false,
            validation: FieldValidation::Ignore,
        };
        match self.registry().patch(&self.context(), &self.migrations, request).await {
            Err(status) if matches!(status.code, 404 | 409 | 422) => Ok(()),
            written => written.map(drop),
        }
    }
}
