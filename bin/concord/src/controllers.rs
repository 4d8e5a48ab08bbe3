//! `concord controllers`: what a server does for its objects, for a server that does not, such as a kube-apiserver alone.

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use clap::Args;
use concord_migrator::standalone::{Answer, Ask, Server, Standalone};
use http::Method;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::LogOptions,
    logging, say,
    storage::{Api, Connection},
};

/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Only the metadata of what is listed.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[derive(Debug, Args)]
pub(crate) struct ControllersOptions {
    /// The version in which the server serves StorageVersionMigrations.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", value_parser = ["v1beta1", "v1"])]
    storage_migration_version: String,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    log: LogOptions,
}

struct Remote(Api);

#[async_trait]
impl Server for Remote {
    async fn ask(&self, ask: Ask, path: &str) -> Result<Answer, String> {
        let (method, body, accept) = match &ask {
            Ask::Get => (Method::GET, None, "application/json"),
            Ask::GetMetadata => (Method::GET, None, METADATA),
            Ask::Put(object) => (Method::PUT, Some(object), "application/json"),
            Ask::Patch(patch) => (Method::PATCH, Some(patch), "application/json"),
        };
        let answer = tokio::time::timeout(TIMEOUT, self.0.ask(method, path, body, accept)).await;
        answer.map_err(|_| "the server does not answer".to_owned())?.map_err(|error| format!("{error:#}"))
    }
}

/// Runs until it is interrupted.
pub(crate) fn run(options: &ControllersOptions) -> anyhow::Result<ExitCode> {
    // Whether the log can be written is nobody's business here.
    let _health = logging::init(&options.log)?;
    concord_server::runtime().context("cannot start the runtime")?.block_on(async {
        let api = Api::open(&options.connection)?;
        let version = api.get("/version").await.context("the server cannot be used")?;
        let version = version["gitVersion"].as_str().unwrap_or("unknown").to_owned();
        say(&format!(
            "Migrating what is stored by a server of version {version}, from outside. What is stored cannot be counted from \
             here, and what other servers write is not known: migrations say so."
        ))?;
        let cancel = CancellationToken::new();
        let migrator = Standalone::new(Arc::new(Remote(api)), &options.storage_migration_version);
        let work = tokio::spawn(migrator.run(cancel.clone()));
        tokio::signal::ctrl_c().await.context("signals cannot be awaited")?;
        cancel.cancel();
        work.await.context("the migrator ended in an unexpected way")?;
        Ok(ExitCode::SUCCESS)
    })
}
