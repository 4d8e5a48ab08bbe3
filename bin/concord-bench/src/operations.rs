//! One unit of work of each kind.

use std::sync::Arc;

use anyhow::{Result, ensure};
use http::{HeaderValue, Method};
use rand::{RngExt, rngs::StdRng};

use crate::{
    client::{Call, Connection, JSON},
    objects::Objects,
    scan::{self, Reading},
};

/// Objects per page, as client-go's pager and kubectl ask for.
const PAGE: usize = 500;

const MERGE_PATCH: HeaderValue = HeaderValue::from_static("application/merge-patch+json");
const APPLY: HeaderValue = HeaderValue::from_static("application/apply-patch+yaml");
const FIELD_MANAGER: &str = "concord-bench";

/// What is repeated.
#[derive(Clone)]
pub(crate) enum Operation {
    Create,
    Get,
    /// A whole list as one answer.
    List(Freshness),
    /// A whole list in pages.
    ListPaged,
    Update,
    MergePatch,
    Apply,
    Delete,
    /// Delete those that are there, as far as we know; for cleaning up.
    DeleteExisting,
    /// One of several documents in turn.
    Documents {
        paths: Arc<[String]>,
        accept: HeaderValue,
    },
}

/// How current a list must be.
#[derive(Clone, Copy)]
pub(crate) enum Freshness {
    /// No resourceVersion: nothing acknowledged may be missing.
    Consistent,
    /// `resourceVersion=0`: whatever the server has at hand.
    Any,
}

/// Where an operation happens.
pub(crate) struct Worker {
    pub(crate) connection: Connection,
    pub(crate) objects: Arc<Objects>,
    pub(crate) random: StdRng,
    pub(crate) reading: Reading,
}

impl Worker {
    /// Does it once; `turn` says which object a write is about. Returns the bytes of the answer's body.
    pub(crate) async fn perform(&mut self, operation: &Operation, turn: usize) -> Result<u64> {
        let object = turn % self.objects.count();
        match operation {
            Operation::Create => {
                let body = self.objects.whole(object, "created");
                let path = self.objects.collection().to_owned();
                self.write(object, Call::with_body(Method::POST, &path, JSON, body)).await
            }
            Operation::Get => {
                let object = self.random.random_range(0..self.objects.count());
                self.read(Call::get(&self.objects.path(object))).await
            }
            Operation::List(freshness) => self.list(*freshness).await,
            Operation::ListPaged => self.pages().await,
            Operation::Update => {
                let body = self.objects.replacement(object, &format!("update-{turn}"));
                self.write(object, Call::with_body(Method::PUT, &self.objects.path(object), JSON, body)).await
            }
            Operation::MergePatch => self.patch(object, &format!("patch-{turn}")).await,
            Operation::Apply => self.apply(object, turn).await,
            Operation::DeleteExisting if !self.objects.exists(object) => Ok(0),
            Operation::Delete | Operation::DeleteExisting => self.delete(object).await,
            Operation::Documents { paths, accept } => {
                let accept = accept.clone();
                self.read(Call { accept, ..Call::get(&paths[turn % paths.len()]) }).await
            }
        }
    }

    /// Changes one field of an object with a merge patch.
    pub(crate) async fn patch(&mut self, object: usize, stamp: &str) -> Result<u64> {
        let path = self.objects.path(object);
        let body = self.objects.patch(stamp);
        self.write(object, Call::with_body(Method::PATCH, &path, MERGE_PATCH, body)).await
    }

    async fn apply(&mut self, object: usize, turn: usize) -> Result<u64> {
        // The fields belong to whoever created and updated the object, hence force.
        let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", self.objects.path(object));
        let body = self.objects.whole(object, &format!("apply-{turn}"));
        self.write(object, Call::with_body(Method::PATCH, &path, APPLY, body)).await
    }

    async fn delete(&mut self, object: usize) -> Result<u64> {
        let path = self.objects.path(object);
        let bytes = self.read(Call { method: Method::DELETE, ..Call::get(&path) }).await?;
        self.objects.saw(object, 0);
        Ok(bytes)
    }

    async fn list(&mut self, freshness: Freshness) -> Result<u64> {
        let path = match freshness {
            Freshness::Consistent => self.objects.collection().to_owned(),
            Freshness::Any => format!("{}?resourceVersion=0", self.objects.collection()),
        };
        self.read(Call::get(&path)).await
    }

    async fn pages(&mut self) -> Result<u64> {
        let first = format!("{}?limit={PAGE}", self.objects.collection());
        let (mut path, mut bytes, mut pages) = (first.clone(), 0, 0);
        loop {
            let page =
                scan::read(self.connection.expect(Call::get(&path)).await?.into_body(), self.reading).await?;
            bytes += page.bytes;
            pages += 1;
            let Some(token) = page.continue_token() else { break };
            path = format!("{first}&continue={token}");
        }
        // Others may put a ConfigMap of theirs into every namespace.
        let least = self.objects.count().div_ceil(PAGE);
        ensure!(pages >= least, "the paged list ended after page {pages} of at least {least}");
        Ok(bytes)
    }

    async fn read(&mut self, call: Call<'_>) -> Result<u64> {
        Ok(scan::read(self.connection.expect(call).await?.into_body(), self.reading).await?.bytes)
    }

    async fn write(&mut self, object: usize, call: Call<'_>) -> Result<u64> {
        let body = scan::whole(self.connection.expect(call).await?.into_body()).await?;
        self.objects.saw(object, scan::resource_version(&body)?);
        Ok(body.len() as u64)
    }
}
