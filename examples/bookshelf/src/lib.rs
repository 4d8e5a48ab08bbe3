//! An extension API server in a few hundred lines: books, with a type and a store of their own.
//!
//! It is a whole API server, made of the same parts as Concord itself: a store and a replica of it, a registry of
//! resources, endpoints, OpenAPI documents and the handler chain. Behind an APIService its books are part of another server's
//! API: `kubectl get books` works there as for everything else. `docs/extension-servers.md` walks through it.
//!
//! It never decides who may do what. It believes the server in front of it, and only that one, about who asks; that server
//! has authorized the request before it sent it on.
//!
//! Start with [`Bookshelf`], then `book.rs` for what a book is.

mod book;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use concord_endpoints::{Apis, Settings};
use concord_openapi::{Contents, OpenApi};
use concord_pki::{FrontProxyPki, ServingNames, ServingPki};
use concord_registry::Registry;
use concord_replica::Replica;
use concord_server::{
    Attributes, Authentication, Authorizer, Basics, ClientAuthorities, Config, Decision, Handler, Request,
    RequestHeader, RequestHeaderNames, Response, Server, Union, Version,
};
use concord_store_embedded::EmbeddedStore;
use serde_json::{Map, Value, json};

/// What a bookshelf has to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where its books and certificates are kept; made if missing.
    pub data_dir: PathBuf,
    /// Where it listens; port 0 takes any free one.
    pub address: SocketAddr,
    /// The authority of the server in front of it (PEM): that of its `front-proxy-client` certificate.
    pub front_proxy_ca: PathBuf,
    /// The Service that it is behind, as namespace and name: what its certificate is for.
    pub service: (String, String),
}

/// An extension API server.
pub struct Bookshelf {
    server: Server,
    store: Arc<EmbeddedStore>,
    replica: Arc<Replica>,
    ca: String,
    service: (String, String),
}

impl Bookshelf {
    /// Opens its store and takes its address.
    ///
    /// # Errors
    ///
    /// What keeps it from that.
    pub async fn open(options: Options) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&options.data_dir).context("the data directory")?;
        // A store, and a replica of it that answers reads.
        let file = concord_store_embedded::Options::new(options.data_dir.join("books.db"));
        let store = Arc::new(EmbeddedStore::open(&file)?);
        let replica = Arc::new(Replica::start(store.clone(), concord_replica::Config::default(), Vec::new()));
        replica.consistent(Duration::from_secs(30)).await.context("the store")?;
        // What the verbs mean for books, and their HTTP face.
        let registry = Arc::new(Registry::new(store.clone(), replica.clone(), Vec::new()));
        let settings = Settings { server_address: options.address.to_string(), ..Settings::default() };
        let apis = Arc::new(Apis::new(registry, book::set()?, settings));
        let pki = serving(&options)?;
        let ca = std::fs::read_to_string(&pki.ca_certificate)?;
        let config = Config {
            bind_address: options.address.ip(),
            secure_port: options.address.port(),
            authentication: authentication(&options.front_proxy_ca)?,
            authorizer: Arc::new(Union(vec![Arc::new(Authorized), Arc::new(Basics)])),
            paths: paths(&apis),
            apis: Arc::new(Served { openapi: openapi(apis.clone()), apis }),
            ..Config::new(pki.identity, about())
        };
        let server = config.complete()?.listen().await?;
        Ok(Self { server, store, replica, ca, service: options.service })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The APIService that makes it a part of another server's API.
    pub fn api_service(&self) -> Value {
        let (namespace, name) = &self.service;
        let version = book::version();
        json!({
            "kind": "APIService",
            "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {"name": format!("{}.{}", version.version, version.group)},
            "spec": {
                "group": version.group, "version": version.version,
                "groupPriorityMinimum": 2000, "versionPriority": 10,
                "service": {"namespace": namespace, "name": name, "port": 443},
                "caBundle": STANDARD.encode(&self.ca),
            },
        })
    }

    /// Serves until `stop` resolves, and ends in order.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        self.server.run(stop).await;
        self.replica.shutdown().await;
        self.store.close().await;
    }
}

/// The certificate that it serves with.
fn serving(options: &Options) -> anyhow::Result<ServingPki> {
    let (namespace, name) = &options.service;
    let names = ServingNames::loopback().with_dns(&format!("{name}.{namespace}.svc"));
    Ok(ServingPki::open_or_create(&options.data_dir.join("pki"), &names, SystemTime::now())?)
}

/// Believes the server in front of it about who asks.
fn authentication(front_proxy_ca: &Path) -> anyhow::Result<Authentication> {
    let bundle = std::fs::read(front_proxy_ca).with_context(|| front_proxy_ca.display().to_string())?;
    let authorities = Arc::new(ClientAuthorities::from_pem(&bundle)?);
    let header = |name: &str| vec![name.to_owned()];
    let names = RequestHeaderNames {
        username: header("X-Remote-User"),
        uid: header("X-Remote-Uid"),
        group: header("X-Remote-Group"),
        extra_prefix: header("X-Remote-Extra-"),
    };
    let front_proxy = RequestHeader::new(authorities, header(FrontProxyPki::NAME), &names)?;
    Ok(Authentication { request_header: Some(Arc::new(front_proxy)), ..Authentication::default() })
}

/// Whoever the server in front of it names was allowed there what is asked for here.
struct Authorized;

#[async_trait]
impl Authorizer for Authorized {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        match attributes.user.is_anonymous() {
            true => Decision::NoOpinion("only the server in front of this one is believed".to_owned()),
            false => Decision::Allow,
        }
    }
}

/// The documents about books: their schema is all that is needed.
fn openapi(apis: Arc<Apis>) -> OpenApi {
    let version = book::version().version;
    let contents = Contents {
        release: version.clone(),
        annotations: Map::new,
        definitions: Box::new(move |_| {
            Some(json!({"versions": [{"name": version, "schema": {"openAPIV3Schema": book::schema()}}]}))
        }),
        services: Vec::new(),
    };
    OpenApi::new(move || apis.set(), contents)
}

fn paths(apis: &Arc<Apis>) -> Arc<dyn Fn() -> Vec<String> + Send + Sync> {
    let apis = apis.clone();
    Arc::new(move || apis.set().paths().into_iter().chain(OpenApi::paths()).collect())
}

/// What answers requests: for books, and for the documents about them.
struct Served {
    apis: Arc<Apis>,
    openapi: OpenApi,
}

#[async_trait]
impl Handler for Served {
    async fn handle(&self, request: Request) -> Response {
        match request.uri().path().starts_with("/openapi") {
            true => self.openapi.handle(request).await,
            false => self.apis.handle(request).await,
        }
    }
}

/// What `/version` says.
fn about() -> Version {
    let text = str::to_owned;
    Version {
        major: text("1"),
        minor: text("0"),
        emulation_major: text("1"),
        emulation_minor: text("0"),
        min_compatibility_major: text("1"),
        min_compatibility_minor: text("0"),
        git_version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        git_commit: text("unknown"),
        git_tree_state: text("clean"),
        build_date: text("1970-01-01T00:00:00Z"),
        go_version: text("none"),
        compiler: text("rustc"),
        platform: Version::platform(),
    }
}
