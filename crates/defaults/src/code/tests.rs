use serde_json::json;

use super::*;

#[test]
fn code_survives_objects_of_any_shape() {
    let names = [
        "drop_init_container_annotations",
        "empty_dir",
        "image_pull_policy",
        "image_volume_pull_policy",
        "namespace_label",
        "pod_cidrs",
        "pod_ips",
        "pod_level_resources",
        "positive_grace_period",
        "round_up",
        "service_account_alias",
    ];
    let odd = [
        json!(null),
        json!(7),
        json!(""),
        json!([1]),
        json!({"metadata": 1}),
        json!({"resources": {"limits": 3}}),
    ];
    for name in names {
        let code = named(name).expect(name);
        for value in &odd {
            let members = ["metadata", "spec", "image", "podIPs", "podIP", "serviceAccount", "name"];
            let mut object = members.iter().map(|name| ((*name).to_owned(), value.clone())).collect();
            code(&mut object);
        }
    }
    assert!(named("nothing").is_none());
}
