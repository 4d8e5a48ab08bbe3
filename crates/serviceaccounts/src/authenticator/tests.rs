use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use concord_codec::PatchType;
use concord_merge::apply::Time;
use concord_registry::{Part, PatchRequest, metadata};
use serde_json::{Value, json};

use super::*;
use crate::{
    SigningKey, TokenGenerator,
    claims::{Reference, username},
    testing::{P256, RSA, World, context, signing_key},
};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const INVALIDATED: &str = "service account token has been invalidated";

/// Claims that are good for an hour.
fn claims() -> Claims {
    let now = now();
    Claims {
        subject: username("ns", "sa"),
        audiences: vec![ISSUER.to_owned()],
        id: "an-id".to_owned(),
        issued_at: Some(now),
        not_before: Some(now),
        expires: Some(now + 3600),
    }
}

fn bound(uid: &str) -> Bound {
    let account = Reference { name: "sa".to_owned(), uid: uid.to_owned() };
    Bound { namespace: "ns".to_owned(), account, ..Bound::default() }
}

fn sign(pem: &[u8], issuer: &str, claims: &Claims, bound: &Bound) -> String {
    TokenGenerator::new(signing_key(pem), issuer).bound_token(claims, bound).expect("signed")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_token_says_who_it_is() {
    let world = World::new().await;
    let uid = world.account("sa").await;
    for (key, issuer) in [(P256, ISSUER), (RSA, ISSUER)] {
        let token = sign(key, issuer, &claims(), &bound(&uid));
        for round in ["verified", "remembered"] {
            let user = world.who(&token).await.expect(round).expect(round);
            assert_eq!((user.name.as_str(), &user.uid), ("system:serviceaccount:ns:sa", &uid));
            let groups = ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"];
            assert_eq!(user.groups, groups);
            assert_eq!(
                json!(user.extra),
                json!({"authentication.kubernetes.io/credential-id": ["JTI=an-id"]})
            );
        }
    }
    let late = Bound { warn_after: Some(now() - 1), ..bound(&uid) };
    world.who(&sign(P256, ISSUER, &claims(), &late)).await.expect("still good").expect("known");
    let uses = world.authenticator.uses();
    assert_eq!((uses.valid, uses.stale, uses.legacy), (4, 1, 0), "every use is counted");
    assert_eq!((uses.hits, uses.misses), (2, 3), "a signature is verified once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_token_is_refused_in_upstreams_words() {
    let world = World::new().await;
    let uid = world.account("sa").await;
    let (now, good) = (now(), bound(&uid));
    let token = |claims: Claims| sign(P256, ISSUER, &claims, &good);
    let other_key = SigningKey::from_pem(include_bytes!("../../testdata/p384.pem")).expect("a key");
    let other_key = TokenGenerator::new(other_key, ISSUER).bound_token(&claims(), &good).expect("signed");
    let mut forged = token(claims());
    forged.replace_range(forged.len() - 8.., "AAAAAAAA");
    let audience = "token audiences [\"vault\"] is invalid for the target audiences \
                    [\"https://kubernetes.default.svc.cluster.local\"]";
    let of =
        |name: &str| Bound { account: Reference { name: name.to_owned(), uid: uid.clone() }, ..bound(&uid) };
    for (token, complaint) in [
        (token(Claims { expires: Some(now - 70), ..claims() }), "service account token has expired"),
        (token(Claims { not_before: Some(now + 90), ..claims() }), "service account token is not valid yet"),
        (
            token(Claims { issued_at: Some(now + 90), ..claims() }),
            "service account token is issued in the future",
        ),
        (token(Claims { audiences: vec!["vault".to_owned()], ..claims() }), audience),
        (other_key, "invalid signature, no keys found"),
        (forged, BAD_SIGNATURE),
        (sign(P256, ISSUER, &claims(), &of("nobody")), "serviceaccounts \"nobody\" not found"),
        (
            sign(P256, ISSUER, &claims(), &bound("other")),
            &format!("service account UID ({uid}) does not match claim (other)"),
        ),
    ] {
        // Also when it was seen before.
        for _ in 0..2 {
            assert_eq!(world.who(&token).await, Err(complaint.to_owned()));
        }
    }
    // What somebody else issued is left to others.
    for token in ["", "secret", "a.b.c", &sign(P256, "https://elsewhere", &claims(), &good)] {
        assert_eq!(world.who(token).await, Ok(None), "{token}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_without_a_signature_or_with_less_of_one_is_nobodys() {
    let world = World::new().await;
    let uid = world.account("sa").await;
    let good = sign(P256, ISSUER, &claims(), &bound(&uid));
    assert!(world.who(&good).await.expect("good").is_some());
    let (header, rest) = good.split_once('.').expect("three parts");
    let (payload, signature) = rest.split_once('.').expect("three parts");
    let header = BASE64_URL_SAFE_NO_PAD.decode(header).expect("base64");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    for algorithm in ["none", "None", "NONE", "HS256", "RS256", "ES384", ""] {
        let mut header = header.clone();
        header["alg"] = algorithm.into();
        let header = BASE64_URL_SAFE_NO_PAD.encode(header.to_string());
        for signature in ["", signature] {
            let token = format!("{header}.{payload}.{signature}");
            assert_eq!(world.who(&token).await, Err(BAD_SIGNATURE.to_owned()), "{algorithm}");
        }
    }
    for length in 0..good.len() {
        let refused = world.who(&good[..length]).await;
        assert!(!matches!(refused, Ok(Some(_))), "{length} of {}", good.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_ends_with_what_it_is_bound_to() {
    let world = World::new().await;
    world.account("sa").await;
    world.create("nodes", "", json!({"metadata": {"name": "n"}})).await;
    world.create("secrets", "ns", json!({"metadata": {"name": "s"}})).await;
    for (plural, namespace, kind, name) in
        [("pods", "ns", "Pod", "p"), ("secrets", "ns", "Secret", "s"), ("nodes", "", "Node", "n")]
    {
        if plural == "pods" {
            world.pod("p", "sa").await;
        }
        let reference = json!({"kind": kind, "apiVersion": "v1", "name": name});
        let token = world.token("sa", json!({"boundObjectRef": reference})).await;
        assert!(world.who(&token).await.expect("good").is_some(), "{kind}");
        world.delete(plural, namespace, name).await;
        assert_eq!(world.who(&token).await, Err(INVALIDATED.to_owned()), "{kind}");
        // Another object of that name is another object.
        let uid = match plural {
            "pods" => world.pod("p", "sa").await,
            _ => {
                let made = world.create(plural, namespace, json!({"metadata": {"name": name}})).await;
                metadata(&made).uid().to_owned()
            }
        };
        world.settle().await;
        let refused = world.who(&token).await.expect_err("refused");
        let what = kind.to_lowercase();
        let expected = format!("{what} UID ({uid}) does not match service account {what} ref claim (");
        assert!(refused.starts_with(&expected), "{refused}");
    }
    let token = world.token("sa", json!({})).await;
    world.delete("serviceaccounts", "ns", "sa").await;
    assert_eq!(world.who(&token).await, Err("serviceaccounts \"sa\" not found".to_owned()));
    world.account("sa").await;
    let refused = world.who(&token).await.expect_err("refused");
    assert!(refused.starts_with("service account UID ("), "{refused}");
}

async fn patch(world: &World, plural: &str, name: &str, patch: Value) {
    let (resource, body) = (world.resource(plural), patch.to_string());
    let request = PatchRequest {
        name: ObjectName { namespace: "ns", name },
        part: Part::Main,
        patch_type: PatchType::Merge,
        body: body.as_bytes(),
        force: false,
        validation: concord_codec::FieldValidation::Ignore,
    };
    Box::pin(world.registry.patch(&context(), &resource, request)).await.expect("patched");
    world.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_being_deleted_counts_for_a_minute() {
    let world = World::new().await;
    world.account("sa").await;
    let secret = json!({"metadata": {"name": "s", "finalizers": ["example.com/hold"]}});
    let secret = world.create("secrets", "ns", secret).await;
    let reference = json!({"kind": "Secret", "apiVersion": "v1", "name": "s"});
    let token = world.token("sa", json!({"boundObjectRef": reference})).await;
    world.delete("secrets", "ns", "s").await;
    assert!(world.who(&token).await.expect("still good").is_some());
    let bound = Bound {
        secret: Some(Reference { name: "s".to_owned(), uid: metadata(&secret).uid().to_owned() }),
        ..bound("")
    };
    let snapshot = world.registry.replica().newest().expect("there");
    let objects = &world.authenticator.objects;
    let account = objects.get(&snapshot, Kind::ServiceAccount, ObjectName { namespace: "ns", name: "sa" });
    let account =
        Reference { name: "sa".to_owned(), uid: metadata(&account.expect("there")).uid().to_owned() };
    let bound = Bound { account, ..bound };
    let until = super::bound::check(objects, &bound, &snapshot, now()).expect("good").expect("not for long");
    assert!((now() + 50..=now() + 61).contains(&until));
    assert_eq!(super::bound::check(objects, &bound, &snapshot, until), Ok(Some(until)));
    assert_eq!(super::bound::check(objects, &bound, &snapshot, until + 1), Err(INVALIDATED.to_owned()));
}

async fn secret_token(world: &World, uid: &str) -> String {
    let token = world.generator.secret_token("ns", "sa", uid, "s").expect("signed");
    let secret = json!({
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "sa"}},
        "type": "kubernetes.io/service-account-token",
        "stringData": {"token": token},
    });
    world.create("secrets", "ns", secret).await;
    token
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_in_secrets_are_those_of_the_secrets() {
    let world = World::new().await;
    let uid = world.account("sa").await;
    let token = secret_token(&world, &uid).await;
    for _ in 0..2 {
        let user = world.who(&token).await.expect("good").expect("known");
        assert_eq!((user.name.as_str(), user.extra.len()), ("system:serviceaccount:ns:sa", 0));
    }
    assert_eq!(world.authenticator.uses().legacy, 2);
    let secrets = world.resource("secrets");
    let at = ObjectName { namespace: "ns", name: "s" };
    let storage = secrets.storage().expect("stored");
    let stored =
        world.registry.get(storage, at, concord_meta::options::ReadAt::MostRecent).await.expect("there");
    let stored = secrets.object(&stored).expect("an object");
    let last_used =
        metadata(&stored).labels().map(|labels| labels["kubernetes.io/legacy-token-last-used"].clone());
    let today = Time { unix: now() }.to_string();
    assert_eq!(last_used, Some(json!(today[..10])));

    patch(
        &world,
        "secrets",
        "s",
        json!({"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}}}),
    )
    .await;
    let refused = world.who(&token).await.expect_err("refused");
    assert!(
        refused.starts_with("the token in secret ns/s for service account ns/sa has been marked invalid."),
        "{refused}"
    );
    patch(&world, "secrets", "s", json!({"metadata": {"labels": null}, "data": {"token": "b3RoZXI="}})).await;
    assert_eq!(world.who(&token).await, Err("Token does not match server's copy".to_owned()));
    world.delete("secrets", "ns", "s").await;
    assert_eq!(world.who(&token).await, Err("Token has been invalidated".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_in_secrets_need_not_be_looked_up() {
    let world = World::with(Config { lookup: false, ..Config::default() }).await;
    let token = world.generator.secret_token("ns", "sa", "any", "s").expect("signed");
    assert_eq!(world.who(&token).await.expect("good").expect("known").name, "system:serviceaccount:ns:sa");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_issuer_is_accepted_and_the_first_signs() {
    let issuers = vec!["https://new".to_owned(), ISSUER.to_owned(), LEGACY_ISSUER.to_owned()];
    let world = World::with(Config { issuers, ..Config::default() }).await;
    let uid = world.account("sa").await;
    let new = world.token("sa", json!({})).await;
    assert_eq!(Unverified::parse(&new).expect("a token").issuer(), "https://new");
    let tokens = [
        new,
        sign(P256, ISSUER, &claims(), &bound(&uid)),
        sign(P256, LEGACY_ISSUER, &Claims { audiences: vec![], ..claims() }, &bound(&uid)),
        secret_token(&world, &uid).await,
    ];
    for token in tokens {
        assert!(world.who(&token).await.expect("good").is_some(), "{token}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_ends_with_its_key() {
    let world = World::new().await;
    let uid = world.account("sa").await;
    let [of_p256, of_rsa] = [P256, RSA].map(|key| sign(key, ISSUER, &claims(), &bound(&uid)));
    assert!(world.who(&of_p256).await.expect("good").is_some(), "and remembered");
    let mut keys = VerificationKeys::default();
    keys.add(signing_key(RSA).public().clone());
    world.authenticator.replace_keys(keys);
    assert_eq!(world.who(&of_p256).await.expect_err("gone"), "invalid signature, no keys found");
    assert!(world.who(&of_rsa).await.expect("good").is_some());
}
