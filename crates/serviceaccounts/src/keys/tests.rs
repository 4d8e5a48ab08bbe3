use super::*;

const RSA_ID: &str = "vOn07wAm5s3sgQO6pVJRzuy6sEjgr6Wnj4uMwlp3gEo";
const P256_ID: &str = "ao4MAE8gNSZ1C5Jkx3MiU9voNKRvJkSZ5KUAeHzHvMU";
const P384_ID: &str = "KG3h5rLntOBIzIkz1aJylT5zCCplTBkowHdgpcL64OM";
const P521_ID: &str = "VLeROOOsjf07EUyZQb0FRj7oPRKaNJJLux2-95BCP8A";

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../../testdata/", $name)).as_slice()
    };
}

/// The identities are those that `openssl dgst -sha256` gives for the public keys.
const FILES: [(&[u8], Algorithm, &str, bool); 9] = [
    (file!("rsa.pem"), Algorithm::Rs256, RSA_ID, true),
    (file!("rsa-pkcs1.pem"), Algorithm::Rs256, RSA_ID, true),
    (file!("rsa.pub"), Algorithm::Rs256, RSA_ID, false),
    (file!("rsa.crt"), Algorithm::Rs256, RSA_ID, false),
    (file!("p256.pem"), Algorithm::Es256, P256_ID, true),
    (file!("p256-sec1.pem"), Algorithm::Es256, P256_ID, true),
    (file!("p256.pub"), Algorithm::Es256, P256_ID, false),
    (file!("p384.pem"), Algorithm::Es384, P384_ID, true),
    (file!("p521-sec1.pem"), Algorithm::Es512, P521_ID, true),
];

#[test]
fn keys_of_every_form_have_one_name() {
    for (pem, algorithm, id, private) in FILES {
        let mut keys = VerificationKeys::default();
        keys.add_pem(pem).expect(id);
        assert_eq!((keys.all()[0].algorithm(), keys.all()[0].id()), (algorithm, id));
        match SigningKey::from_pem(pem) {
            Ok(key) => {
                assert!(private);
                let signature = key.sign(b"message").expect("signed");
                assert!(keys.all()[0].verifies(b"message", &signature), "{id}");
                assert!(!keys.all()[0].verifies(b"massage", &signature), "{id}");
            }
            Err(error) => assert!(!private && error == Error::NoPrivateKey, "{id}"),
        }
    }
}

#[test]
fn files_without_a_key_are_refused() {
    let garbage = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
    // Too short to be trusted.
    for pem in [b"", &b"text"[..], garbage.as_bytes(), file!("rsa-1024.pem")] {
        assert_eq!(VerificationKeys::default().add_pem(pem), Err(Error::NoPublicKeys));
        assert_eq!(SigningKey::from_pem(pem).err(), Some(Error::NoPrivateKey));
    }
}

#[test]
fn several_keys_verify_while_one_takes_over() {
    let mut keys = VerificationKeys::default();
    keys.add_pem(&[file!("rsa.pub"), file!("p256.pub"), file!("rsa.crt")].concat()).expect("two keys");
    assert_eq!(keys.all().len(), 2, "the same key is there once");
    let candidates = |id: &str| keys.candidates(id).iter().map(|key| key.id().to_owned()).collect::<Vec<_>>();
    assert_eq!(candidates(""), [RSA_ID, P256_ID]);
    assert_eq!(candidates(P256_ID), [P256_ID]);
    assert_eq!(candidates(P384_ID), [""; 0]);
}
