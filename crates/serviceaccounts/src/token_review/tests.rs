use crate::testing::World;

use super::*;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_says_whose_a_token_is_and_for_whom() {
    let world = World::new().await;
    let uid = world.account("sa").await;
    let token = world.token("sa", json!({"audiences": ["vault", ISSUER]})).await;
    let review =
        |token: &str, audiences: &[&str]| world.review(json!({"token": token, "audiences": audiences}));
    for (asked, told) in [(&[][..], [ISSUER]), (&["vault"], ["vault"]), (&["x", "vault"], ["vault"])] {
        let status = review(&token, asked).await.expect("an answer")["status"].clone();
        assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(told)));
        assert_eq!(
            (&status["user"]["username"], &status["user"]["uid"]),
            (&json!("system:serviceaccount:ns:sa"), &json!(uid))
        );
        let groups = json!(["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]);
        assert_eq!(status["user"]["groups"], groups);
    }
    let alice = json!({
        "authenticated": true, "audiences": [ISSUER],
        "user": {"username": "alice", "uid": "1", "groups": ["developers", "system:authenticated"]},
    });
    assert_eq!(review("secret", &[]).await.expect("an answer")["status"], alice);
    assert_eq!(review("secret and more", &[]).await.expect("an answer")["status"], alice);
    let audiences = format!(
        "[invalid bearer token, token audiences [\"vault\" \"{ISSUER}\"] is invalid for the target audiences [\"y\"]]"
    );
    let no_key = "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]";
    for (token, audience, error) in [
        ("abc", ISSUER, "invalid bearer token"),
        ("secret", "y", "invalid bearer token"),
        (&token, "y", &audiences),
        (&format!("{token}AA"), ISSUER, no_key),
    ] {
        let status = review(token, &[audience]).await.expect("an answer")["status"].clone();
        assert_eq!(status, json!({"user": {}, "error": error}));
    }
    let refused = review("", &[]).await.expect_err("nothing to review");
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (400, "token is required for TokenReview in authentication")
    );
}
