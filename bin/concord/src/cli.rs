//! What can be asked for on the command line. Flags that kube-apiserver has carry its names, defaults and
//! groups.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    access::AuthorizationOptions, aggregation::AggregationOptions, audit::AuditOptions,
    authentication::AuthenticationOptions, controllers::ControllersOptions, duration,
    election::ElectionOptions, encryption::EncryptionOptions, fleet::FleetOptions,
    garbage::GarbageCollectorOptions, migration::MigrationOptions, overload::RequestOptions,
    peers::PeerOptions, plugins::PluginOptions, service_accounts::ServiceAccountOptions,
    storage::StorageCommand, transport::TransportOptions, version, webhooks::WebhookOptions,
};

/// A Kubernetes API server for fleets whose servers are never all the same version.
#[derive(Debug, Parser)]
#[command(name = "concord", version = version::CONCORD)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server until it is told to stop.
    ///
    /// Without any flag it keeps its data in an embedded store in the data directory, makes its own
    /// certificates there, and listens on port 6443. With --etcd-servers it keeps its data in etcd.
    ///
    /// With --config every flag can stand in a file, by its name: `secure-port: 7443`.
    ///
    /// SIGTERM and SIGINT end it in order: /readyz fails, running requests finish. A second signal ends it
    /// at once; acknowledged writes are safe either way.
    Serve(Box<ServeOptions>),
    /// Print a kubeconfig for the administrator of a server.
    ///
    /// It is the one that `concord serve` writes to admin.kubeconfig in its data directory.
    Kubeconfig(KubeconfigOptions),
    /// Back up, restore or check an embedded store.
    #[command(subcommand)]
    Store(StoreCommand),
    /// See in which versions and with which keys objects are stored, and migrate them.
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Carry out the StorageVersionMigrations of a server that does not do so itself, such as a kube-apiserver alone.
    ///
    /// `concord serve` needs no such help. Seen from outside, neither what other servers write nor what is stored is known:
    /// objects are written again, and nothing is said to be proved.
    Controllers(ControllersOptions),
    /// Print the version of Concord and of the Kubernetes API it speaks.
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    pub(crate) data: DataOptions,
    #[command(flatten)]
    pub(crate) serving: SecureServingOptions,
    #[command(flatten)]
    pub(crate) transport: TransportOptions,
    #[command(flatten)]
    pub(crate) authentication: AuthenticationOptions,
    #[command(flatten)]
    pub(crate) authorization: AuthorizationOptions,
    #[command(flatten)]
    pub(crate) audit: AuditOptions,
    #[command(flatten)]
    pub(crate) service_accounts: ServiceAccountOptions,
    #[command(flatten)]
    pub(crate) etcd: EtcdOptions,
    #[command(flatten)]
    pub(crate) encryption: EncryptionOptions,
    #[command(flatten)]
    pub(crate) apis: ApiOptions,
    #[command(flatten)]
    pub(crate) webhooks: WebhookOptions,
    #[command(flatten)]
    pub(crate) aggregation: AggregationOptions,
    #[command(flatten)]
    pub(crate) plugins: PluginOptions,
    #[command(flatten)]
    pub(crate) requests: RequestOptions,
    #[command(flatten)]
    pub(crate) shutdown: ShutdownOptions,
    #[command(flatten)]
    pub(crate) fleet: FleetOptions,
    #[command(flatten)]
    pub(crate) garbage: GarbageCollectorOptions,
    #[command(flatten)]
    pub(crate) election: ElectionOptions,
    #[command(flatten)]
    pub(crate) migration: MigrationOptions,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
    /// A YAML file with flags by their names. What is typed counts more than what is in the file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KubeconfigOptions {
    #[command(flatten)]
    pub(crate) data: DataOptions,
    /// The URL to write into it, instead of the one that the server listens on.
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "APIs")]
pub(crate) struct ApiOptions {
    /// The release of Kubernetes whose APIs are served, such as 1.33 or kube=1.33. Default: the newest.
    #[arg(long, value_name = "RELEASE", value_delimiter = ',')]
    pub(crate) emulated_version: Vec<String>,
    /// APIs to turn on or off, separated by commas: api/all=true, api/beta=true, api/alpha=true, api/ga=false,
    /// internal.apiserver.k8s.io/v1alpha1=true, resource.k8s.io/v1beta2/deviceclasses=true. What names a resource
    /// counts most, then what names its version.
    #[arg(long, value_name = "KEY=BOOL", value_delimiter = ',')]
    pub(crate) runtime_config: Vec<String>,
    /// Features to turn on or off, separated by commas: EnvFiles=false, AllAlpha=true. Upstream's names; those that the
    /// release does not have are refused.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    pub(crate) feature_gates: Vec<String>,
    /// The addresses that Services get.
    #[arg(long, value_name = "CIDR", default_value = "10.0.0.0/24")]
    pub(crate) service_cluster_ip_range: String,
    /// The ports that Services of type NodePort get.
    #[arg(long, value_name = "FROM-TO", default_value = "30000-32767")]
    pub(crate) service_node_port_range: String,
    /// The address that clients in the cluster reach this server at. Default: the first of this machine that is not a
    /// loopback one, or --bind-address.
    #[arg(long, value_name = "IP")]
    pub(crate) advertise_address: Option<IpAddr>,
    /// How long events are kept.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration::parse)]
    pub(crate) event_ttl: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Storage")]
pub(crate) struct DataOptions {
    /// Where the embedded store (store.db), the certificates (pki/) and the administrator's admin.kubeconfig are
    /// kept; made if missing. Only one server at a time can use it.
    ///
    /// Default: $XDG_DATA_HOME/concord, or ~/.local/share/concord if that variable is not set.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Secure serving")]
pub(crate) struct SecureServingOptions {
    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub(crate) bind_address: IpAddr,
    /// The port to listen on; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,
    /// Where the certificates are kept: ca, apiserver and admin, each with .crt and .key, and the key of service accounts,
    /// sa.key with sa.pub. What is missing is made;
    /// servers that share or copy one such directory are one fleet.
    /// The authority is never replaced; the serving certificate is, when it nears its end or a name is missing
    /// in it.
    ///
    /// Default: pki in the data directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) pki_dir: Option<PathBuf>,
    /// The certificate to serve with (PEM, with its chain), instead of one made here. Read again when it or its key changes.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The key of --tls-cert-file (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// How long /livez lets the server start before what is not finished counts as dead.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub(crate) livez_grace_period: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Etcd")]
pub(crate) struct EtcdOptions {
    /// The client URLs of an etcd cluster to keep the data in, separated by commas. Without it the embedded
    /// store is used.
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    pub(crate) etcd_servers: Vec<String>,
    /// What all keys in etcd begin with.
    #[arg(long, value_name = "PREFIX", default_value = "/registry", requires = "etcd_servers")]
    pub(crate) etcd_prefix: String,
    /// The authority that signed etcd's certificates (PEM). Needed for https:// URLs.
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    pub(crate) etcd_cafile: Option<PathBuf>,
    /// The certificate to show to etcd (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_cafile", "etcd_keyfile"])]
    pub(crate) etcd_certfile: Option<PathBuf>,
    /// The key of --etcd-certfile (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_cafile", "etcd_certfile"])]
    pub(crate) etcd_keyfile: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Shutdown")]
pub(crate) struct ShutdownOptions {
    /// How long to go on serving after a signal, with /readyz failing, so that load balancers can notice
    /// (such as 10s).
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub(crate) shutdown_delay_duration: Duration,
    /// How long running requests then have to finish before they are cut off.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub(crate) shutdown_grace_period: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogOptions {
    /// The form of log entries on standard error.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) logging_format: LogFormat,
    /// How much to log: 0 for what an operator should know, 4 for debugging, 6 for everything.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub(crate) verbosity: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text per entry.
    Text,
    /// One JSON object per entry.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy the store to a new file. The server may be running.
    Backup {
        /// The file to make. It must not exist.
        file: PathBuf,
        #[command(flatten)]
        data: DataOptions,
    },
    /// Make the store of a data directory that has none from a backup. The server must not be running.
    Restore {
        /// The backup to read.
        file: PathBuf,
        #[command(flatten)]
        data: DataOptions,
    },
    /// Read and verify everything in a store or a backup, changing nothing. The server may be running.
    Check {
        /// The file to check; the store of the data directory if not given.
        #[arg(conflicts_with = "data_dir")]
        file: Option<PathBuf>,
        #[command(flatten)]
        data: DataOptions,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn serve(arguments: &[&str]) -> Result<ServeOptions, String> {
        let cli = Cli::try_parse_from([&["concord", "serve"], arguments].concat());
        match cli.map_err(|error| error.to_string())?.command {
            Command::Serve(options) => Ok(*options),
            other => panic!("{other:?} is not serve"),
        }
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_upstreams() {
        let options = serve(&[]).expect("no flag is required");
        assert_eq!(options.serving.bind_address.to_string(), "0.0.0.0");
        assert_eq!(options.serving.secure_port, 6443);
        assert_eq!(options.etcd.etcd_prefix, "/registry");
        assert!(options.etcd.etcd_servers.is_empty());
        assert_eq!(options.shutdown.shutdown_delay_duration, Duration::ZERO);
        assert_eq!(options.logs.logging_format, LogFormat::Text);
    }

    #[test]
    fn flags_are_written_as_for_kube_apiserver() {
        let options = serve(&[
            "--bind-address=::1",
            "--secure-port=0",
            "--etcd-servers=https://a:2379,https://b:2379",
            "--etcd-cafile=ca",
            "--etcd-certfile=crt",
            "--etcd-keyfile=key",
            "--logging-format=json",
            "--shutdown-delay-duration=1m30s",
            "-v=4",
        ])
        .expect("all of them exist");
        assert_eq!(options.etcd.etcd_servers, ["https://a:2379", "https://b:2379"]);
        assert_eq!(options.shutdown.shutdown_delay_duration, Duration::from_secs(90));
        assert_eq!((options.logs.logging_format, options.logs.verbosity), (LogFormat::Json, 4));
        assert_eq!(serve(&["--v=6"]).expect("both spellings exist").logs.verbosity, 6);
    }

    #[test]
    fn flags_that_make_no_sense_are_refused() {
        let servers = "--etcd-servers=https://a";
        for (arguments, complaint) in [
            (&["--etcd-cafile=ca"][..], "--etcd-servers"),
            (&[servers, "--etcd-cafile=ca", "--etcd-certfile=crt"], "--etcd-keyfile"),
            (&[servers, "--etcd-certfile=crt", "--etcd-keyfile=key"], "--etcd-cafile"),
            (&["--secure-port=70000"], "70000"),
            (&["--shutdown-delay-duration=soon"], "soon"),
            (&["--bind-address=localhost"], "localhost"),
            (&["--no-such-flag"], "--no-such-flag"),
        ] {
            let error = serve(arguments).expect_err(complaint);
            assert!(error.contains(complaint), "{error} should mention {complaint}");
        }
    }
}
