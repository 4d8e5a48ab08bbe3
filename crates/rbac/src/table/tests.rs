use std::collections::BTreeSet;

use super::*;

#[test]
fn all_of_the_table_is_read() {
    let all = wanted();
    let count = |plural: &str| all.iter().filter(|wanted| wanted.plural == plural).count();
    let counts = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"].map(count);
    assert_eq!(counts, [71, 52, 7, 7]);
    let places: BTreeSet<_> =
        all.iter().map(|wanted| (wanted.plural, &wanted.namespace, &wanted.name)).collect();
    assert_eq!(places.len(), all.len(), "nothing stands there twice");
    for binding in all.iter().filter(|wanted| wanted.is_binding()) {
        let role = binding.object["roleRef"]["name"].as_str().expect("a name");
        let plural = if binding.namespace.is_empty() { "clusterroles" } else { "roles" };
        let found =
            all.iter().any(|w| w.plural == plural && w.namespace == binding.namespace && w.name == role);
        assert!(found, "{} is bound to nothing", binding.name);
    }
}

#[test]
fn the_form_is_what_its_top_says() {
    let table = "# a comment\n\nclusterrole a\n  label k=v\n  aggregates x=y\n  get,list  core,apps  pods,pods/log  p,q\n  get  url  /x,/y/*\n\
                 rolebinding n/b r\n  user u\n  serviceaccount m/s\nclusterrolebinding c\n  when g.io/things\n";
    let all = read(table).expect("good");
    let metadata = |labels: Value| {
        let mut metadata = json!({"annotations": {AUTO_UPDATE: "true"}, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}});
        for (key, value) in labels.as_object().expect("labels") {
            metadata["labels"][key] = value.clone();
        }
        metadata
    };
    let mut role = json!({
        "metadata": metadata(json!({"k": "v"})),
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]},
        "rules": [
            {"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "pods/log"], "resourceNames": ["p", "q"]},
            {"verbs": ["get"], "nonResourceURLs": ["/x", "/y/*"]},
        ],
    });
    role["metadata"]["name"] = "a".into();
    assert_eq!(all[0].object, role);
    assert_eq!((all[1].plural, &*all[1].namespace, &*all[1].name), ("rolebindings", "n", "b"));
    assert_eq!(all[1].object["roleRef"], json!({"apiGroup": GROUP, "kind": "Role", "name": "r"}));
    assert_eq!(
        all[1].object["subjects"],
        json!([{"kind": "User", "apiGroup": GROUP, "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "m"}])
    );
    assert_eq!(all[2].object["roleRef"], json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": "c"}));
    assert_eq!(all[1].when, None);
    assert_eq!(all[2].when, Some(GroupResource::new("g.io", "things")));
}

#[test]
fn lines_that_make_no_sense_are_named() {
    for line in [
        "node x",
        "role without-namespace",
        "  get core pods",
        "clusterrole a\n  get",
        "clusterrole a\n  label x",
    ] {
        let told = read(line).expect_err(line);
        assert!(line.ends_with(&told), "{told}");
    }
}
