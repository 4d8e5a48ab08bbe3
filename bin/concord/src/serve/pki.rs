//! The certificates that a server has and believes.

use std::{fs, path::Path, sync::Arc, time::SystemTime};

use anyhow::Context as _;
use concord_pki::{AdminPki, ClientIdentity, FrontProxyPki, ServingNames, ServingPki, load_identity};
use concord_server::Identity;
use rustls::sign::CertifiedKey;

use crate::{authentication::Authorities, cli::SecureServingOptions, host, reload::Reloader};

/// The certificates of a server.
pub(super) struct Pki {
    /// What the server shows to its clients.
    pub(super) identity: Arc<CertifiedKey>,
    /// The administrator's, with what that client trusts servers by.
    pub(super) admin: AdminPki,
    /// Whom it believes who its clients are. Never what an operator's serving certificate is signed by: who signs servers
    /// need not be trusted to name users.
    pub(super) authorities: Authorities,
    /// What the server shows to those behind it.
    pub(super) front_proxy: Arc<ClientIdentity>,
}

impl Pki {
    /// What the files of the operator hold; else what the directory does, made now if it must be.
    pub(super) fn open(options: &SecureServingOptions, directory: &Path) -> anyhow::Result<Self> {
        let mut admin = AdminPki::open_or_create(directory, SystemTime::now())?;
        let front_proxy = FrontProxyPki::open_or_create(directory, SystemTime::now())?;
        let authorities = Authorities { clients: admin.ca.clone(), proxies: front_proxy.ca.clone() };
        let front_proxy = load_identity(&front_proxy.certificate, &front_proxy.key)?;
        let front_proxy = Arc::new(ClientIdentity::new(front_proxy));
        if let (Some(certificate), Some(key)) = (&options.tls_cert_file, &options.tls_private_key_file) {
            let identity = load_identity(certificate, key)?;
            // The file may hold the chain that clients are to trust.
            let chain = fs::read_to_string(certificate);
            admin.ca.push_str(&chain.with_context(|| format!("cannot read {}", certificate.display()))?);
            return Ok(Self { identity, admin, authorities, front_proxy });
        }
        let mut names = ServingNames::loopback().with_ip(options.bind_address);
        // What peers and clients in a cluster call every server.
        for name in ["kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
            names = names.with_dns(name);
        }
        if let Some(name) = host::name() {
            names = names.with_dns(&name);
        }
        let serving = ServingPki::open_or_create(directory, &names, SystemTime::now())?;
        if serving.issued {
            tracing::info!(directory = %directory.display(), "Issued a new serving certificate.");
        }
        Ok(Self { identity: serving.identity, admin, authorities, front_proxy })
    }
}

/// Serves with what the files of the operator hold, whenever they change.
pub(super) fn reload_identity(
    options: &SecureServingOptions,
    identity: &Arc<Identity>,
    reloader: &mut Reloader,
) {
    if let (Some(certificate), Some(key)) =
        (options.tls_cert_file.clone(), options.tls_private_key_file.clone())
    {
        let (identity, files) = (identity.clone(), vec![certificate.clone(), key.clone()]);
        reloader.watch("--tls-cert-file", files, move || {
            identity.replace(load_identity(&certificate, &key)?);
            Ok(())
        });
    }
}
