//! The namespace that everything happens in, and its removal.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use memchr::memmem;

use crate::{
    client::{Call, Connection, JSON, Refusal},
    drive::{Bound, Crew},
    operations::Operation,
    progress::Progress,
    scan,
};

/// How long a namespace controller gets to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// Creates it.
pub(crate) async fn create(connection: &mut Connection, name: &str) -> Result<()> {
    let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    let call = Call::with_body(Method::POST, "/api/v1/namespaces", JSON, Bytes::from(body));
    let created = finish(connection, call).await;
    created.context("cannot create a namespace: the user of the kubeconfig must be allowed to")
}

/// Deletes our objects and the namespace, and waits until it is gone.
pub(crate) async fn remove(crew: &Crew, name: &str, time_limit: Duration) -> Result<()> {
    let mut connection = crew.server.connect().await?;
    delete_objects(crew, time_limit).await?;
    let path = format!("/api/v1/namespaces/{name}");
    // A server may let one request delete only so much in its time; what is left of ours is little by now.
    finish(&mut connection, delete(crew.objects.collection())).await?;
    finish(&mut connection, delete(&path)).await?;
    if gone(&mut connection, &path, time_limit).await? {
        return Ok(());
    }
    // Only a controller ends namespaces, and a bare API server has none. All we put into it is deleted, and
    // what controllers put into every namespace goes too, so nothing is left behind.
    finish(&mut connection, delete(crew.objects.collection())).await?;
    finish(&mut connection, delete(&format!("{path}/configmaps"))).await?;
    finish(&mut connection, delete(&format!("{path}/serviceaccounts"))).await?;
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}},"spec":{{"finalizers":[]}}}}"#
    );
    let finalize = format!("{path}/finalize");
    absent_is_fine(
        finish(&mut connection, Call::with_body(Method::PUT, &finalize, JSON, Bytes::from(body))).await,
    )
}

async fn delete_objects(crew: &Crew, time_limit: Duration) -> Result<()> {
    let count = crew.objects.count();
    let left = (0..count).filter(|object| crew.objects.exists(*object)).count();
    if left == 0 {
        return Ok(());
    }
    let progress = Progress::counting("cleaning up", count as u64);
    // After an interruption some may be missing: failures do not matter here.
    crew.run(Operation::DeleteExisting, Bound::Turns(count, time_limit), &progress).await.map(drop)
}

fn delete(path: &str) -> Call<'_> {
    Call { method: Method::DELETE, ..Call::get(path) }
}

async fn finish(connection: &mut Connection, call: Call<'_>) -> Result<()> {
    scan::drain(connection.expect(call).await?.into_body()).await.map(drop)
}

fn absent_is_fine(result: Result<()>) -> Result<()> {
    match result {
        Err(failure) if is_absent(&failure) => Ok(()),
        other => other,
    }
}

fn is_absent(failure: &anyhow::Error) -> bool {
    failure.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND)
}

/// Waits until it is gone; false when nobody seems to be ending it.
async fn gone(connection: &mut Connection, path: &str, time_limit: Duration) -> Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < time_limit {
        let answer = match connection.expect(Call::get(path)).await {
            Err(failure) if is_absent(&failure) => return Ok(true),
            answered => answered?,
        };
        let body = scan::whole(answer.into_body()).await?;
        // A namespace controller writes down how far it is, and must not be overtaken.
        let worked_on = memmem::find(&body, br#""conditions":"#).is_some();
        if !worked_on && begun.elapsed() > PATIENCE {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("it is still terminating after {time_limit:?}")
}
