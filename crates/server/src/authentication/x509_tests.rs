use rcgen::{CertificateParams, CustomExtension, DistinguishedName as Name, DnType, ExtendedKeyUsagePurpose};

use super::{
    super::signer::{Signer, name},
    *,
};
use crate::http::testing::request;

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
    let user = Ok(Some(Arc::new(UserInfo::default())));
    let vouched = Vouched { common_name: String::new(), user, end: soon };
    *peer.0.verified.lock() = vec![(ours.number(), Arc::new(Ok(vouched)))];
    assert!(ours.authenticate(&mut parts).await.expect_err("late").to_string().contains("expired"));
}

#[tokio::test]
async fn authorities_can_be_replaced_under_an_open_connection() {
    let (old, new) = (Signer::new("old", None), Signer::new("new", None));
    let authorities = old.authorities();
    let mut parts = request("GET", "/").into_parts().0;
    let peer = PeerCertificates::new(&[new.sign(|_| {})]);
    parts.extensions.insert(peer.clone());
    assert!(authorities.authenticate(&mut parts).await.is_err());
    let number = authorities.number();
    assert!(authorities.replace(b"nonsense").is_err());
    assert_eq!(authorities.number(), number, "what cannot be read changes nothing");
    authorities.replace(new.pem.as_bytes()).expect("usable");
    assert!(authorities.authenticate(&mut parts).await.is_ok_and(|user| user.is_some()));
    for _ in 0..9 {
        authorities.replace(old.pem.as_bytes()).expect("usable");
        assert!(authorities.authenticate(&mut parts).await.is_err());
    }
    assert_eq!(peer.0.verified.lock().len(), REMEMBERED);
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
