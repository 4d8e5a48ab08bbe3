//! `concord storage`: what is stored in which form, and how to change that. Talks to any server of a fleet.

mod client;
mod migrate;
mod rotate;
mod show;
mod status;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};

use crate::cli::DataOptions;

pub(crate) use client::Api;

#[derive(Debug, Subcommand)]
pub(crate) enum StorageCommand {
    /// Show which version and which key the servers write each resource with, and whether they agree.
    Status {
        /// Only these: secrets, deployments.apps.
        resources: Vec<String>,
        #[command(flatten)]
        connection: Connection,
    },
    /// Count in which versions and with which keys the objects of a resource are stored. Changes nothing.
    ///
    /// The exit code is 2 if some have another form than the servers write.
    Census {
        /// The resource: secrets, deployments.apps.
        resource: String,
        #[command(flatten)]
        connection: Connection,
    },
    /// Bring all objects of resources into the form that the servers write, and show how far that is.
    ///
    /// Ctrl-C ends the command and not the migration. The exit code is 2 if something could not be migrated.
    Migrate(MigrateOptions),
    /// Hold a migration up.
    Pause(NamedMigration),
    /// Let a migration go on.
    Resume(NamedMigration),
    /// End a migration; what it has written stays.
    Cancel(NamedMigration),
    /// Go through the rotation of an encryption key in the one order that is safe.
    ///
    /// Says what is to be done on which servers, and does what can be done from here. The exit code is 0 when the old keys
    /// may be removed, and 3 when it is somebody's turn to change a file.
    RotateKey(RotateOptions),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateOptions {
    /// The resources: secrets, deployments.apps.
    #[arg(required_unless_present = "all")]
    resources: Vec<String>,
    /// Everything that is stored, but events and leases.
    #[arg(long, conflicts_with = "resources")]
    all: bool,
    /// Only count what would be written.
    #[arg(long)]
    dry_run: bool,
    /// Write at most so many objects in a second.
    #[arg(long, value_name = "NUMBER")]
    max_requests_per_second: Option<f64>,
    /// Do not wait for the end.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
pub(crate) struct RotateOptions {
    /// The new key, as it is written before the values that it encrypts: aescbc:v1:NAME, aesgcm:v1:NAME,
    /// secretbox:v1:NAME or kms:v2:NAME; or identity, to encrypt no more. If two keys have one name, with the tag that
    /// `concord storage status` shows.
    #[arg(long, value_name = "KEY")]
    to: String,
    /// The resources; without any, all that are encrypted.
    resources: Vec<String>,
    /// Wait until a step is done instead of ending.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
pub(crate) struct NamedMigration {
    /// The name of the StorageVersionMigration.
    name: String,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// How to reach a server. Default: $KUBECONFIG, or the file in the data directory.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    data: DataOptions,
    /// The form of the output.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What could not be done, for the caller of the program.
const UNCLEAN: u8 = 2;
/// Somebody has to do something.
const YOUR_TURN: u8 = 3;
/// As shells have it for Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs a command to its end.
pub(crate) fn run(command: StorageCommand) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = runtime.context("cannot start the runtime")?.block_on(dispatch(command))?;
    Ok(ExitCode::from(code))
}

async fn dispatch(command: StorageCommand) -> anyhow::Result<u8> {
    match command {
        StorageCommand::Status { resources, connection } => {
            status::run(&Api::open(&connection)?, &resources, connection.output).await
        }
        StorageCommand::Census { resource, connection } => {
            migrate::census(&Api::open(&connection)?, &resource, connection.output).await
        }
        StorageCommand::Migrate(options) => migrate::run(&Api::open(&options.connection)?, &options).await,
        StorageCommand::Pause(named) => migrate::order(&named, "paused", Some("true")).await,
        StorageCommand::Resume(named) => migrate::order(&named, "paused", None).await,
        StorageCommand::Cancel(named) => migrate::order(&named, "cancelled", Some("true")).await,
        StorageCommand::RotateKey(options) => rotate::run(&Api::open(&options.connection)?, &options).await,
    }
}
