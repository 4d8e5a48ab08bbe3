//! What holds for every document about the built-in APIs.

mod support;

use std::{fs, path::Path};

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

/// docs/openapi.md says which test shows what.
#[test]
fn every_test_that_is_told_of_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/openapi.md")).expect("docs/openapi.md");
    let rows: Vec<&str> =
        text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| row")).collect();
    assert_eq!(rows.len(), 24);
    for row in rows {
        let told = row.rsplit('|').nth(1).expect("a column");
        let mut source = String::new();
        // Between backticks stands a file, or a test of the file before it.
        for name in told.split('`').skip(1).step_by(2).filter(|name| !name.contains(' ')) {
            match name.ends_with(".rs") {
                true => {
                    source =
                        fs::read_to_string(root.join(name)).unwrap_or_else(|_| panic!("there is no {name}"))
                }
                false if name.ends_with(".txt") => {}
                false => assert!(source.contains(&format!("fn {name}(")), "{row}: {name}"),
            }
        }
    }
}
