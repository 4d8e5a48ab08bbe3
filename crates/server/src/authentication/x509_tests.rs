use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName as Name, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use super::*;
use crate::http::testing::request;

/// An authority and what it signs.
struct Signer {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

fn name(parts: &[(DnType, &str)]) -> Name {
    let mut name = Name::new();
    parts.iter().for_each(|(kind, value)| name.push(kind.clone(), *value));
    name
}

impl Signer {
    fn new(common_name: &str, above: Option<&Self>) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&[(DnType::CommonName, common_name)]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = match above {
            Some(above) => params.signed_by(&key, &above.issuer),
            None => params.self_signed(&key),
        };
        let certificate = certificate.expect("signed");
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Self { issuer: Issuer::new(params, key), pem, der }
    }

    fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&[(DnType::CommonName, "alice")]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let certificate = params.signed_by(&KeyPair::generate().expect("a key"), &self.issuer);
        certificate.expect("signed").der().clone()
    }

    fn authorities(&self) -> ClientAuthorities {
        ClientAuthorities::from_pem(self.pem.as_bytes()).expect("usable")
    }
}

async fn ask(authorities: &ClientAuthorities, chain: &[CertificateDer<'static>]) -> Authenticated {
    let mut parts = request("GET", "/").into_parts().0;
    if !chain.is_empty() {
        parts.extensions.insert(PeerCertificates::new(chain));
    }
    authorities.authenticate(&mut parts).await
}

#[tokio::test]
async fn the_subject_says_who_it_is() {
    let signer = Signer::new("ca", None);
    let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    let certificate = signer.sign(|params| {
        params.distinguished_name =
            name(&[(DnType::OrganizationName, "devs"), (DnType::CommonName, "alice"), (uid(), "u-1")]);
    });
    let user =
        ask(&signer.authorities(), std::slice::from_ref(&certificate)).await.expect("valid").expect("a user");
    assert_eq!((&*user.name, &*user.uid), ("alice", "u-1"));
    assert_eq!(user.groups, ["devs", "system:authenticated"]);
    let credential = &user.extra["authentication.kubernetes.io/credential-id"];
    assert_eq!(credential.len(), 1);
    assert_eq!((&credential[0][..11], credential[0].len()), ("X509SHA256=", 11 + 64));

    let nameless = signer.sign(|params| params.distinguished_name = Name::new());
    assert_eq!(ask(&signer.authorities(), &[nameless]).await, Ok(None));
    assert_eq!(ask(&signer.authorities(), &[]).await, Ok(None), "no certificate, no opinion");
}

#[tokio::test]
async fn what_cannot_be_verified_is_refused() {
    let (signer, stranger) = (Signer::new("ca", None), Signer::new("ca", None));
    let past = SystemTime::now() - Duration::from_secs(3600);
    let for_servers = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]
    };
    let critical = |params: &mut CertificateParams| {
        let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
    };
    for (certificate, complaint) in [
        (stranger.sign(|_| {}), "failed"),
        (signer.sign(|params| params.not_after = past.into()), "xpired"),
        (
            signer.sign(|params| params.not_before = (past + Duration::from_secs(7200)).into()),
            "not valid yet",
        ),
        (signer.sign(for_servers), "failed"),
        (signer.sign(critical), "failed"),
        (CertificateDer::from(vec![0; 10]), "cannot be read"),
    ] {
        let error = ask(&signer.authorities(), &[certificate]).await.expect_err(complaint);
        assert!(error.to_string().contains(complaint), "{error} should mention {complaint}");
    }
}

#[tokio::test]
async fn a_chain_over_an_intermediate_is_followed() {
    let root = Signer::new("root", None);
    let between = Signer::new("between", Some(&root));
    let certificate = between.sign(|_| {});
    let authorities = root.authorities();
    assert!(ask(&authorities, std::slice::from_ref(&certificate)).await.is_err(), "a link is missing");
    let chain = [certificate, between.der.clone()];
    assert_eq!(ask(&authorities, &chain).await.expect("valid").expect("a user").name, "alice");
}

#[tokio::test]
async fn a_connection_remembers_what_each_authority_said() {
    let (signer, stranger) = (Signer::new("ca", None), Signer::new("ca", None));
    let peer = PeerCertificates::new(&[signer.sign(|_| {})]);
    let mut parts = request("GET", "/").into_parts().0;
    parts.extensions.insert(peer.clone());
    let (ours, theirs) = (signer.authorities(), stranger.authorities());
    for _ in 0..3 {
        assert!(ours.authenticate(&mut parts).await.is_ok_and(|user| user.is_some()));
        assert!(theirs.authenticate(&mut parts).await.is_err());
    }
    assert_eq!(peer.0.verified.lock().len(), 2);
    // Remembered or not, a certificate ends.
    let soon = SystemTime::now() - Duration::from_secs(1);
    let user = Arc::new(UserInfo::default());
    *peer.0.verified.lock() = vec![(ours.number, Arc::new(Ok((Some(user), soon))))];
    assert!(ours.authenticate(&mut parts).await.expect_err("late").to_string().contains("expired"));
}

#[test]
fn files_that_hold_no_authority_are_explained() {
    for (pem, complaint) in [
        ("", "does not contain any valid"),
        ("text", "does not contain any valid"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate number 1 cannot be used",
        ),
    ] {
        let error = ClientAuthorities::from_pem(pem.as_bytes()).err().expect(complaint);
        assert!(error.to_string().contains(complaint), "{error}");
    }
    let several = Signer::new("a", None).pem + &Signer::new("b", None).pem;
    let authorities = ClientAuthorities::from_pem(several.as_bytes()).expect("usable");
    assert_eq!(authorities.names().len(), 2);
}
