use std::path::{Path, PathBuf};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// The PEM files of a TLS cluster.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate that signed all others.
    pub ca: PathBuf,
    /// A client's certificate.
    pub client_cert: PathBuf,
    /// Its key.
    pub client_key: PathBuf,
    server_cert: PathBuf,
    server_key: PathBuf,
}

impl TlsFiles {
    /// Makes a new authority with one server and one client certificate.
    ///
    /// # Errors
    ///
    /// When the files cannot be written.
    pub fn create(directory: &Path) -> anyhow::Result<Self> {
        let ca = authority()?;
        let file = |name: &str, content: String| -> anyhow::Result<PathBuf> {
            let path = directory.join(name);
            std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
            Ok(path)
        };
        let (server_cert, server_key) = leaf(&ca, "etcd")?;
        let (client_cert, client_key) = leaf(&ca, "client")?;
        Ok(Self {
            ca: file("ca.pem", ca.pem())?,
            client_cert: file("client.pem", client_cert)?,
            client_key: file("client.key", client_key)?,
            server_cert: file("server.pem", server_cert)?,
            server_key: file("server.key", server_key)?,
        })
    }

    pub(super) fn etcd_args(&self) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        vec![
            "--client-cert-auth".to_owned(),
            format!("--trusted-ca-file={}", path(&self.ca)),
            format!("--cert-file={}", path(&self.server_cert)),
            format!("--key-file={}", path(&self.server_key)),
        ]
    }
}

fn authority() -> anyhow::Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// A certificate for loopback and its key. etcd also dials itself with its own, so all are for both sides.
fn leaf(ca: &CertifiedIssuer<'_, KeyPair>, name: &str) -> anyhow::Result<(String, String)> {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let cert = params.signed_by(&key, ca)?;
    Ok((cert.pem(), key.serialize_pem()))
}
