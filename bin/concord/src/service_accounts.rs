//! Service accounts: the flags, and what a server is given because of them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use concord_apis::Virtuals;
use concord_controllers::ServiceAccountsConfig;
use concord_pki::ServiceAccountKey;
use concord_registry::{Admission, Registry, Resources};
use concord_replica::Replica;
use concord_server::{Metrics, TokenAuthenticator};
use concord_serviceaccounts::{
    Config, Objects, OpenId, ServiceAccountAdmission, ServiceAccountAuthenticator, SigningKey,
    TokenGenerator, TokenRequests, TokenReviews, VerificationKeys,
};

use crate::{duration, reload::Reloader};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Service accounts")]
pub(crate) struct ServiceAccountOptions {
    /// The private key that signs the tokens of service accounts (PEM, RSA or ECDSA). Default: sa.key among the
    /// certificates, which is made if missing. Read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,
    /// Keys that verify such tokens (PEM: public keys, private keys or certificates); can be given several times. Default:
    /// the key that signs. Read again when they change.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    pub(crate) service_account_key_file: Vec<PathBuf>,
    /// Who signs tokens. Of several the first is the one of new tokens, and all are accepted.
    #[arg(
        long,
        value_name = "URL",
        value_delimiter = ',',
        default_value = "https://kubernetes.default.svc.cluster.local"
    )]
    pub(crate) service_account_issuer: Vec<String>,
    /// Where others find the keys, if not on this server.
    #[arg(long, value_name = "URL")]
    pub(crate) service_account_jwks_uri: Option<String>,
    /// Whom tokens must be for to be accepted. Default: the issuers.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) api_audiences: Vec<String>,
    /// How long a token can be asked for; 0 for no limit of its own.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub(crate) service_account_max_token_expiration: Duration,
    /// Whether the tokens that pods get without asking are good for a year, because old clients do not read them again.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) service_account_extend_token_expiration: bool,
    /// Whether tokens in Secrets end with their Secrets.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) service_account_lookup: bool,
}

impl ServiceAccountOptions {
    fn config(&self) -> anyhow::Result<Config> {
        let max = self.service_account_max_token_expiration;
        let config = Config {
            issuers: self.service_account_issuer.clone(),
            api_audiences: self.api_audiences.clone(),
            max_expiration: (!max.is_zero()).then_some(max),
            extend_expiration: self.service_account_extend_token_expiration,
            lookup: self.service_account_lookup,
        };
        Ok(config.complete()?)
    }

    fn signing_key(&self, pki_dir: &Path) -> anyhow::Result<SigningKey> {
        let (path, pem) = match &self.service_account_signing_key_file {
            Some(path) => (path.clone(), read(path)?),
            None => {
                let key = ServiceAccountKey::open_or_create(pki_dir)?;
                (key.path, key.private.into_bytes())
            }
        };
        SigningKey::from_pem(&pem).with_context(|| format!("cannot sign with {}", path.display()))
    }

    /// What is named, or else the key that signs. The key that the server made itself always counts: nobody can have
    /// named it.
    fn verification_keys(&self, signing: &SigningKey) -> anyhow::Result<VerificationKeys> {
        let mut keys = VerificationKeys::default();
        for path in &self.service_account_key_file {
            let pem = read(path)?;
            keys.add_pem(&pem).with_context(|| format!("--service-account-key-file {}", path.display()))?;
        }
        let own = self.service_account_signing_key_file.is_none();
        if own || self.service_account_key_file.is_empty() {
            keys.add(signing.public().clone());
        }
        Ok(keys)
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// What service accounts are to a server.
pub(crate) struct ServiceAccounts {
    config: Arc<Config>,
    keys: VerificationKeys,
    generator: Arc<TokenGenerator>,
    objects: Arc<Objects>,
    authenticator: Arc<ServiceAccountAuthenticator>,
    jwks_uri: Option<String>,
    root_ca: String,
    others: Vec<Arc<dyn TokenAuthenticator>>,
}

impl ServiceAccounts {
    /// Has the uses of tokens counted.
    pub(crate) fn count(&self, metrics: &Metrics) {
        let authenticator = self.authenticator.clone();
        metrics.before_scrape(move |metrics| metrics.set_token_uses(authenticator.uses()));
    }

    /// Reads the keys, or makes one. `others` know other tokens.
    pub(crate) fn new(
        options: &ServiceAccountOptions,
        pki_dir: &Path,
        root_ca: &str,
        replica: &Arc<Replica>,
        others: Vec<Arc<dyn TokenAuthenticator>>,
    ) -> anyhow::Result<Self> {
        let config = Arc::new(options.config()?);
        let signing = options.signing_key(pki_dir)?;
        let keys = options.verification_keys(&signing)?;
        let objects = Arc::new(Objects::new(replica.clone()));
        let authenticator = ServiceAccountAuthenticator::new(config.clone(), keys.clone(), objects.clone());
        Ok(Self {
            generator: Arc::new(TokenGenerator::new(signing, &config.issuers[0])),
            config,
            keys,
            objects,
            authenticator: Arc::new(authenticator),
            jwks_uri: options.service_account_jwks_uri.clone(),
            root_ca: root_ca.to_owned(),
            others,
        })
    }

    /// Who knows their tokens.
    pub(crate) fn authenticator(&self) -> Arc<dyn TokenAuthenticator> {
        self.authenticator.clone()
    }

    /// What keeps accounts and tokens in Secrets.
    pub(crate) fn controllers(&self) -> ServiceAccountsConfig {
        ServiceAccountsConfig { generator: self.generator.clone(), root_ca: self.root_ca.clone() }
    }

    /// The APIs about tokens.
    pub(crate) fn virtuals(&self) -> Virtuals {
        let (config, generator, objects) =
            (self.config.clone(), self.generator.clone(), self.objects.clone());
        let requests = move |schema| {
            let requests = TokenRequests::new(schema, config.clone(), generator.clone(), objects.clone());
            Arc::new(requests) as _
        };
        let (config, accounts, others) =
            (self.config.clone(), self.authenticator.clone(), self.others.clone());
        let reviews = move |schema| {
            Arc::new(TokenReviews::new(schema, config.clone(), others.clone(), accounts.clone())) as _
        };
        Virtuals::default().with("TokenRequest", requests).with("TokenReview", reviews)
    }

    /// What gives pods their accounts.
    pub(crate) fn admission(&self) -> Arc<dyn Admission> {
        Arc::new(ServiceAccountAdmission::new(self.objects.clone()))
    }

    /// Tells all of them what there is.
    pub(crate) fn connect(&self, resources: &dyn Resources, registry: &Arc<Registry>) -> anyhow::Result<()> {
        Ok(self.objects.connect(resources, registry)?)
    }

    /// Has the keys read again when their files change: those that verify first, so that no token is made that nobody
    /// accepts.
    pub(crate) fn reload(
        &self,
        options: &ServiceAccountOptions,
        pki_dir: &Path,
        openid: Option<Arc<OpenId>>,
        reloader: &mut Reloader,
    ) {
        let mut files = options.service_account_key_file.clone();
        files.extend(options.service_account_signing_key_file.clone());
        if files.is_empty() {
            return;
        }
        let (options, pki_dir) = (options.clone(), pki_dir.to_owned());
        let (authenticator, generator) = (self.authenticator.clone(), self.generator.clone());
        reloader.watch("--service-account-key-file", files, move || {
            let signing = options.signing_key(&pki_dir)?;
            let keys = options.verification_keys(&signing)?;
            if let Some(openid) = &openid {
                openid.replace_keys(&keys)?;
            }
            authenticator.replace_keys(keys);
            generator.replace_key(signing);
            Ok(())
        });
    }

    /// What others need to check tokens themselves; `None`, and said, if the issuer is not one that they could trust.
    pub(crate) fn openid(&self, address: &str) -> Option<OpenId> {
        let openid = OpenId::new(&self.config, &self.keys, self.jwks_uri.as_deref(), address);
        openid
            .inspect_err(|error| tracing::warn!(%error, "The keys of service accounts are not published."))
            .ok()
    }
}
