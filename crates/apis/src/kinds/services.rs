use concord_registry::{Context, Object, Part};
use serde_json::{Value, json};

use super::{Hooks, keep, member};

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), update: Some(update), ..Hooks::NONE };

fn create(_: &Context, object: &mut Object) {
    drop_internal_policy(member(object, "spec"));
}

/// Names elsewhere have no traffic of their own. What is no policy at all stays, to be refused.
fn drop_internal_policy(spec: &mut Object) {
    let is_policy = |policy: &Value| policy == "Cluster" || policy == "Local";
    if kind(spec) == "ExternalName" && spec.get("internalTrafficPolicy").is_some_and(is_policy) {
        spec.remove("internalTrafficPolicy");
    }
}

/// The addresses stay with the service: a client that does not repeat them keeps them. What goes with a type goes with it,
/// but addresses and node ports, which whoever gave them takes back.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    if part != Part::Main {
        return;
    }
    let old = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let spec = member(new, "spec");
    if kind(spec) == kind(&old) {
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if spec.get(name).is_none_or(|value| value == "" || value.is_null()) {
                keep(spec, &old, name);
            }
        }
    }
    drop_of_other_types(spec, &old);
    drop_internal_policy(spec);
    if kind(spec) != "LoadBalancer"
        && let Some(Value::Object(status)) = new.get_mut("status")
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

/// Drops what the new type cannot have and the client left as it was: it need not know what the server filled in for the
/// old one. What the client changes as well is left for validation to refuse.
fn drop_of_other_types(new: &mut Object, old: &Object) {
    let balances = |spec: &Object| kind(spec) == "LoadBalancer";
    let lost = |is: fn(&Object) -> bool, new: &Object| is(old) && !is(new);
    let mut names = Vec::new();
    if lost(balances, new) {
        names.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if lost(is_externally_accessible, new) {
        names.push("externalTrafficPolicy");
    }
    for name in names {
        if new.get(name) == old.get(name) {
            new.remove(name);
        }
    }
}

fn kind(spec: &Object) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or("ClusterIP")
}

fn is_externally_accessible(spec: &Object) -> bool {
    let has_external_ips =
        || spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    matches!(kind(spec), "LoadBalancer" | "NodePort") || (kind(spec) == "ClusterIP" && has_external_ips())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOCATES: &str = "allocateLoadBalancerNodePorts";
    const CLASS: &str = "loadBalancerClass";
    const POLICY: &str = "externalTrafficPolicy";

    /// Services of each type as they are stored, with what the type alone can have.
    const TYPES: [(&str, &[&str]); 4] = [
        ("ClusterIP", &[]),
        ("ExternalName", &[]),
        ("LoadBalancer", &[ALLOCATES, CLASS, POLICY]),
        ("NodePort", &[POLICY]),
    ];

    fn service(kind: &str, fields: &[&str]) -> Object {
        let value =
            |name: &&str| ((*name).to_owned(), if *name == ALLOCATES { true.into() } else { json!("x") });
        let mut spec: Object = fields.iter().map(value).collect();
        spec.insert("type".to_owned(), kind.into());
        let status = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});
        Object::from_iter([("spec".to_owned(), spec.into()), ("status".to_owned(), status)])
    }

    fn changed(new: &Object, old: &Object) -> Object {
        let mut new = new.clone();
        let context = Context::of_the_server(concord_merge::apply::Time { unix: 0 });
        update(&context, Part::Main, &mut new, old);
        new
    }

    #[test]
    fn from_each_type_to_each_other() {
        let kept: [(&str, &str, &[&str]); 12] = [
            ("ClusterIP", "ExternalName", &[]),
            ("ClusterIP", "LoadBalancer", &[]),
            ("ClusterIP", "NodePort", &[]),
            ("ExternalName", "ClusterIP", &[]),
            ("ExternalName", "LoadBalancer", &[]),
            ("ExternalName", "NodePort", &[]),
            ("LoadBalancer", "ClusterIP", &[]),
            ("LoadBalancer", "ExternalName", &[]),
            ("LoadBalancer", "NodePort", &[POLICY]),
            ("NodePort", "ClusterIP", &[]),
            ("NodePort", "ExternalName", &[]),
            ("NodePort", "LoadBalancer", &[POLICY]),
        ];
        for (from, to, kept) in kept {
            let fields = TYPES.iter().find(|(name, _)| *name == from).expect("a type").1;
            let new = changed(&service(to, fields), &service(from, fields));
            assert_eq!(new["spec"], service(to, kept)["spec"], "{from} to {to}");
            let balanced = new["status"]["loadBalancer"] != json!({});
            assert_eq!(balanced, to == "LoadBalancer", "{from} to {to}");
        }
    }

    #[test]
    fn names_elsewhere_have_no_internal_policy() {
        for (policy, is_kept) in [("Cluster", false), ("Local", false), ("Other", true)] {
            let mut service = service("ExternalName", &[]);
            service["spec"]["internalTrafficPolicy"] = policy.into();
            let changed = changed(&service, &service);
            assert_eq!(changed["spec"].get("internalTrafficPolicy").is_some(), is_kept, "{policy}");
        }
    }

    #[test]
    fn what_is_changed_along_with_the_type_stays() {
        let old = service("LoadBalancer", TYPES[2].1);
        let mut new = service("ClusterIP", TYPES[2].1);
        new["spec"][POLICY] = "y".into();
        new["spec"][CLASS] = "y".into();
        new["spec"][ALLOCATES] = false.into();
        assert_eq!(changed(&new, &old)["spec"], new["spec"]);
        // An address outside makes a service reachable from there whatever its type is.
        let mut outside = service("ClusterIP", &[POLICY]);
        outside["spec"]["externalIPs"] = json!(["1.2.3.4"]);
        assert_eq!(changed(&outside, &old)["spec"], outside["spec"]);
    }

    #[test]
    fn what_belongs_to_the_type_stays_with_it() {
        for (name, fields) in TYPES {
            let same = service(name, fields);
            assert_eq!(changed(&same, &same)["spec"], same["spec"], "{name}");
        }
        let policy = service("NodePort", &[POLICY]);
        let status = |object: &Object| object["status"].clone();
        let mut new = policy.clone();
        let context = Context::of_the_server(concord_merge::apply::Time { unix: 0 });
        update(&context, Part::Sub("status"), &mut new, &policy);
        assert_eq!(status(&new), status(&policy), "the status has a door of its own");
    }
}
