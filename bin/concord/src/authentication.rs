//! Who is let in: the flags, and what a server is given because of them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use clap::Args;
use concord_controllers::ClusterAuthentication;
use concord_pki::FrontProxyPki;
use concord_server::{
    Authentication, ClientAuthorities, RequestHeader, RequestHeaderNames, TokenAuthenticator, TokenFile,
};
use tokio::sync::watch;

use crate::reload::{Reloader, read_text};

#[derive(Debug, Args)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct AuthenticationOptions {
    /// Whose client certificates are accepted, besides the administrator's (PEM). The common name is the user, the
    /// organizations are the groups. Read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// A file of bearer tokens, one per line: token,user,uid,"group1,group2". Read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Whether clients without credentials may ask for health and version.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) anonymous_auth: bool,
    /// Whose certificates proxies have that say in headers who their clients are (PEM). Read again when it changes. Never
    /// an authority that also signs the certificates of users, unless --requestheader-allowed-names tells them apart.
    /// Default: front-proxy-ca.crt of the PKI, for front-proxy-client alone, with the common headers.
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,
    /// The common names of the certificates of such proxies, separated by commas. Default: any name.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "requestheader_client_ca_file")]
    pub(crate) requestheader_allowed_names: Vec<String>,
    /// The headers with the name of the user; X-Remote-User is common. Without any nobody is named.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_username_headers: Vec<String>,
    /// The headers with the uid of the user; X-Remote-Uid must be one of them.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_uid_headers: Vec<String>,
    /// The headers with the groups of the user; X-Remote-Group is common.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_group_headers: Vec<String>,
    /// What the names of headers begin with that say what else is known about the user; X-Remote-Extra- is common.
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

impl AuthenticationOptions {
    fn names(&self) -> RequestHeaderNames {
        if self.requestheader_client_ca_file.is_none() {
            return common_names();
        }
        RequestHeaderNames {
            username: self.requestheader_username_headers.clone(),
            uid: self.requestheader_uid_headers.clone(),
            group: self.requestheader_group_headers.clone(),
            extra_prefix: self.requestheader_extra_headers_prefix.clone(),
        }
    }

    fn allowed_names(&self) -> Vec<String> {
        match &self.requestheader_client_ca_file {
            Some(_) => self.requestheader_allowed_names.clone(),
            None => vec![FrontProxyPki::NAME.to_owned()],
        }
    }
}

/// The headers by which the servers of a PKI tell each other who their clients are.
fn common_names() -> RequestHeaderNames {
    let header = |name: &str| vec![name.to_owned()];
    RequestHeaderNames {
        username: header("X-Remote-User"),
        uid: header("X-Remote-Uid"),
        group: header("X-Remote-Group"),
        extra_prefix: header("X-Remote-Extra-"),
    }
}

/// The authorities of the PKI, in PEM.
pub(crate) struct Authorities {
    /// Whose client certificates are the administrator's.
    pub(crate) clients: String,
    /// Whose certificates are those of the servers that tell who their clients are.
    pub(crate) proxies: String,
}

/// How clients are known, and what extension API servers are to be told about it.
pub(crate) struct Clients {
    pub(crate) authentication: Authentication,
    pub(crate) trust: watch::Receiver<ClusterAuthentication>,
}

impl Clients {
    /// The administrator of this PKI, those of the operator's authority, those of whom a proxy says who they are, and who
    /// has a token. What is in files is read again when they change.
    pub(crate) fn new(
        options: &AuthenticationOptions,
        own: Authorities,
        reloader: &mut Reloader,
    ) -> anyhow::Result<Self> {
        let names = options.names();
        let trust = watch::Sender::new(ClusterAuthentication {
            allowed_names: options.allowed_names(),
            username_headers: names.username,
            uid_headers: names.uid,
            group_headers: names.group,
            extra_header_prefixes: names.extra_prefix,
            ..ClusterAuthentication::default()
        });
        let told = trust.subscribe();
        let trust = Arc::new(trust);
        let client_ca = client_ca(options, own.clients, &trust, reloader)?;
        let request_header = request_header(options, &own.proxies, &trust, reloader)?;
        let mut tokens: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
        if let Some(file) = token_file(options, reloader)? {
            tokens.push(file);
        }
        let authentication = Authentication {
            client_ca: Some(client_ca),
            request_header,
            tokens,
            others: Vec::new(),
            forbid_anonymous: !options.anonymous_auth,
        };
        Ok(Self { authentication, trust: told })
    }
}

type Trust = Arc<watch::Sender<ClusterAuthentication>>;

fn client_ca(
    options: &AuthenticationOptions,
    own: String,
    trust: &Trust,
    reloader: &mut Reloader,
) -> anyhow::Result<Arc<ClientAuthorities>> {
    let bundle = move |file: Option<&Path>| -> anyhow::Result<String> {
        let Some(file) = file else { return Ok(own.clone()) };
        let more = read_text(file)?;
        // By itself: with the server's own there would always be one.
        ClientAuthorities::from_pem(more.as_bytes())?;
        Ok(format!("{own}\n{more}"))
    };
    let flag = "--client-ca-file";
    let all = bundle(options.client_ca_file.as_deref()).context(flag)?;
    let authorities = Arc::new(ClientAuthorities::from_pem(all.as_bytes()).context(flag)?);
    trust.send_modify(|trust| trust.client_ca = all);
    if let Some(file) = options.client_ca_file.clone() {
        let (authorities, trust) = (authorities.clone(), trust.clone());
        reloader.watch(flag, vec![file.clone()], move || {
            let all = bundle(Some(&file))?;
            authorities.replace(all.as_bytes())?;
            trust.send_modify(|trust| trust.client_ca = all);
            Ok(())
        });
    }
    Ok(authorities)
}

fn request_header(
    options: &AuthenticationOptions,
    own: &str,
    trust: &Trust,
    reloader: &mut Reloader,
) -> anyhow::Result<Option<Arc<RequestHeader>>> {
    let Some(file) = options.requestheader_client_ca_file.clone() else {
        let authorities = Arc::new(ClientAuthorities::from_pem(own.as_bytes())?);
        trust.send_modify(|trust| own.clone_into(&mut trust.request_header_ca));
        let proxies = RequestHeader::new(authorities, options.allowed_names(), &options.names())?;
        return Ok(Some(Arc::new(proxies)));
    };
    if options.requestheader_allowed_names.iter().any(|name| name.trim().is_empty()) {
        bail!("--requestheader-allowed-names has an empty name");
    }
    let flag = "--requestheader-client-ca-file";
    let bundle = read_text(&file).context(flag)?;
    let authorities = Arc::new(ClientAuthorities::from_pem(bundle.as_bytes()).context(flag)?);
    let allowed = options.requestheader_allowed_names.clone();
    let proxies = RequestHeader::new(authorities.clone(), allowed, &options.names())
        .context("--requestheader-*-headers")?;
    trust.send_modify(|trust| trust.request_header_ca = bundle);
    let trust = trust.clone();
    reloader.watch(flag, vec![file.clone()], move || {
        let bundle = read_text(&file)?;
        authorities.replace(bundle.as_bytes())?;
        trust.send_modify(|trust| trust.request_header_ca = bundle);
        Ok(())
    });
    Ok(Some(Arc::new(proxies)))
}

fn token_file(
    options: &AuthenticationOptions,
    reloader: &mut Reloader,
) -> anyhow::Result<Option<Arc<TokenFile>>> {
    let Some(file) = options.token_auth_file.clone() else { return Ok(None) };
    let name = file.to_string_lossy().into_owned();
    let tokens = Arc::new(TokenFile::parse(&read_text(&file)?, &name)?);
    let same = tokens.clone();
    reloader
        .watch("--token-auth-file", vec![file.clone()], move || Ok(same.replace(&read_text(&file)?, &name)?));
    Ok(Some(tokens))
}
