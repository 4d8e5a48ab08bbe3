use super::*;
use crate::testing::World;

fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("not an object") };
    object
}

fn mounts(container: &Value) -> Vec<&str> {
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    mounts.filter_map(|mount| mount["name"].as_str()).collect()
}

#[test]
fn every_container_gets_a_mount_of_one_volume() {
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    let mut pod = object(json!({"spec": {
        "initContainers": [{"name": "i"}],
        "containers": [{"name": "a"}, {"name": "b", "volumeMounts": [{"name": "own", "mountPath": path}]}],
        "volumes": [{"name": "own", "emptyDir": {}}],
    }}));
    mount::mount_token(&mut pod);
    let spec = &pod["spec"];
    let volume = spec["volumes"][1].clone();
    let name = volume["name"].as_str().expect("a name");
    assert!(name.len() == "kube-api-access-xxxxx".len() && name.starts_with("kube-api-access-"), "{name}");
    assert_eq!(
        spec["initContainers"][0]["volumeMounts"],
        json!([{"name": name, "readOnly": true, "mountPath": path}])
    );
    assert_eq!((mounts(&spec["containers"][0]), mounts(&spec["containers"][1])), (vec![name], vec!["own"]));
    let sources = &volume["projected"]["sources"];
    assert_eq!(volume["projected"]["defaultMode"], 420);
    assert_eq!(sources[0], json!({"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}));
    // Once is enough.
    let before = pod.clone();
    mount::mount_token(&mut pod);
    assert_eq!(pod, before);
}

#[test]
fn a_pod_may_refer_to_the_secrets_of_its_account_alone() {
    let account = object(json!({
        "metadata": {"name": "sa"}, "secrets": [{"name": "mine"}], "imagePullSecrets": [{"name": "pull"}],
    }));
    let variable =
        |secret: &str| json!([{"name": "v", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}]);
    let not_allowed = "is not allowed because service account sa does not reference that secret";
    for (spec, complaint) in [
        (json!({"containers": [{"name": "c", "env": variable("mine")}]}), None),
        (json!({"volumes": [{"name": "v", "secret": {"secretName": "mine"}}]}), None),
        (json!({"imagePullSecrets": [{"name": "pull"}]}), None),
        (
            json!({"volumes": [{"name": "v", "secret": {"secretName": "other"}}]}),
            Some(format!("volume with secret.secretName=\"other\" {not_allowed}")),
        ),
        (
            json!({"containers": [{"name": "c", "env": variable("other")}]}),
            Some(format!("container c with envVar v referencing secret.secretName=\"other\" {not_allowed}")),
        ),
        (
            json!({"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "other"}}]}]}),
            Some(format!("init container i with envFrom referencing secret.secretName=\"other\" {not_allowed}")),
        ),
        (
            json!({"imagePullSecrets": [{"name": "mine"}]}),
            Some(
                "imagePullSecrets[0].name=\"mine\" is not allowed because service account sa does not reference that \
                 imagePullSecret"
                    .to_owned(),
            ),
        ),
    ] {
        assert_eq!(secrets::check(&account, &object(json!({"spec": spec}))).err(), complaint, "{spec}");
    }
    let added = object(json!({"spec": {"ephemeralContainers": [{"name": "e", "env": variable("other")}]}}));
    assert_eq!(secrets::check(&account, &added), Ok(()));
    let refused = secrets::check_ephemeral(&account, &added).expect_err("refused");
    assert!(refused.starts_with("ephemeral container e with envVar v referencing"), "{refused}");
}

#[test]
fn pods_of_a_kubelet_refer_to_nothing() {
    for (spec, complaint) in [
        (json!({"containers": [{"name": "c"}]}), None),
        (json!({"serviceAccountName": "sa"}), Some("a mirror pod may not reference service accounts")),
        (json!({"imagePullSecrets": [{"name": "s"}]}), Some("a mirror pod may not reference secrets")),
        (
            json!({"volumes": [{"projected": {"sources": [{"secret": {"name": "s"}}]}}]}),
            Some("a mirror pod may not reference secrets"),
        ),
        (
            json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}),
            Some("a mirror pod may not use ServiceAccountToken volume projections"),
        ),
    ] {
        assert_eq!(secrets::check_mirror(&object(json!({"spec": spec}))).err(), complaint, "{spec}");
    }
}

fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] = json!([{"name": "c", "image": "i"}]);
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_has_an_account_that_exists() {
    let world = World::new().await;
    let refused = world.try_create("pods", "ns", pod("p", json!({"serviceAccountName": "none"}))).await;
    assert_eq!(
        refused.expect_err("refused").message,
        "pods \"p\" is forbidden: error looking up service account ns/none: serviceaccount \"none\" not found"
    );
    let pull = json!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]});
    // The account of the namespace may come a little later than the namespace.
    let (made, _) = tokio::join!(world.create("pods", "ns", pod("p", json!({}))), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.create("serviceaccounts", "ns", pull).await
    });
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(mounts(&spec["containers"][0]).len(), 1);
    let made = world.create("pods", "ns", pod("q", json!({"automountServiceAccountToken": false}))).await;
    assert_eq!(mounts(&made["spec"]["containers"][0]).len(), 0);
    let quiet = json!({"metadata": {"name": "quiet"}, "automountServiceAccountToken": false});
    world.create("serviceaccounts", "ns", quiet).await;
    let made = world.create("pods", "ns", pod("r", json!({"serviceAccount": "quiet"}))).await;
    assert_eq!((&made["spec"]["serviceAccountName"], made["spec"].get("volumes")), (&json!("quiet"), None));
}
