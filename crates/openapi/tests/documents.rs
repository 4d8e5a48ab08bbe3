//! What holds for every document about the built-in APIs.

mod support;

use support::{
    everything, get, keys,
    structure::{check, check_operations, check_own, check_references},
};

#[tokio::test]
async fn every_document_is_whole() {
    let openapi = everything();
    for key in keys(&openapi).await {
        let document = get(&openapi, &format!("/openapi/v3/{key}")).await;
        check(&key, &document);
        check_own(&key, &document);
    }
    let document = get(&openapi, "/openapi/v2").await;
    check_own("v2", &document);
    check_operations("v2", &document);
    check_references("v2", &document);
    assert!(!document.to_string().contains("#/components/"));
}

#[tokio::test]
async fn every_field_has_a_description() {
    let openapi = everything();
    let document = get(&openapi, "/openapi/v3/apis/apps/v1").await;
    let deployment = &document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"];
    for (name, field) in deployment["properties"].as_object().expect("fields") {
        assert!(field["description"].as_str().is_some_and(|text| text.len() > 20), "{name}: {field}");
    }
    let pull_policy =
        &document["components"]["schemas"]["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"];
    assert_eq!(pull_policy["enum"], serde_json::json!(["Always", "IfNotPresent", "Never"]));
    assert!(pull_policy["description"].as_str().is_some_and(|text| text.contains("\n - `\"Never\"`")));
    let v2 = get(&openapi, "/openapi/v2").await;
    assert_eq!(
        v2["definitions"]["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"],
        *pull_policy
    );
}
