use proptest::{collection::vec, prelude::*};

use super::*;

fn rule(verbs: &str, resources: &str, names: &str) -> PolicyRule {
    let list = |text: &str| text.split(',').filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect();
    PolicyRule {
        verbs: list(verbs),
        api_groups: vec![String::new()],
        resources: list(resources),
        resource_names: list(names),
        ..PolicyRule::default()
    }
}

fn role(rules: &[PolicyRule]) -> ClusterRole {
    ClusterRole { rules: rules.to_vec(), ..ClusterRole::default() }
}

fn subject(text: &str) -> Subject {
    let (kind, name) = text.split_once(' ').expect("a kind and a name");
    let (namespace, name) = match kind {
        "ServiceAccount" => name.split_once('/').unwrap_or(("", name)),
        _ => ("", name),
    };
    Subject {
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        ..Subject::default()
    }
}

fn binding(namespace: &str, kind: &str, role: &str, subjects: &[&str]) -> Binding {
    Binding {
        name: "b".into(),
        namespace: namespace.into(),
        role: RoleRef { kind: kind.to_owned(), name: role.to_owned(), ..RoleRef::default() },
        subjects: subjects.iter().map(|text| subject(text)).collect(),
    }
}

fn bind(policy: &mut Policy, name: &str, binding: Binding) {
    let place = place(&binding.namespace, name);
    policy.set_binding(&place, Some(Binding { name: name.into(), ..binding }));
}

/// alice edits dev, the robot of dev reads pods of dev and prod, devs read pods everywhere, the auditor reads one secret.
fn example() -> Policy {
    let mut policy = Policy::default();
    policy.set_role(place("", "reader"), Some(role(&[rule("get,list,watch", "pods", "")])));
    policy.set_role(
        place("dev", "editor"),
        Some(role(&[rule("*", "pods,services", ""), rule("get", "pods/log", "")])),
    );
    policy.set_role(place("prod", "editor"), Some(role(&[])));
    policy.set_role(place("prod", "auditor"), Some(role(&[rule("get", "secrets", "seal")])));
    bind(&mut policy, "devs-read", binding("", "ClusterRole", "reader", &["Group devs"]));
    bind(&mut policy, "alice-edits", binding("dev", "Role", "editor", &["User alice"]));
    bind(&mut policy, "robot", binding("dev", "ClusterRole", "reader", &["ServiceAccount robot"]));
    bind(&mut policy, "robot", binding("prod", "ClusterRole", "reader", &["ServiceAccount dev/robot"]));
    bind(&mut policy, "audit", binding("prod", "Role", "auditor", &["User bob", "Group auditors"]));
    bind(&mut policy, "nowhere", binding("", "ClusterRole", "reader", &["ServiceAccount lost"]));
    bind(&mut policy, "dangling", binding("", "ClusterRole", "gone", &["User eve", "Group ghosts"]));
    bind(&mut policy, "wrong", binding("", "Role", "editor", &["User mallory"]));
    policy
}

fn user(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    UserInfo { name: name.to_owned(), groups, ..UserInfo::default() }
}

fn request(verb: &'static str, namespace: &str, resource: &str, name: &str) -> RequestInfo {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    RequestInfo {
        is_resource_request: true,
        verb: verb.into(),
        namespace: namespace.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        name: name.to_owned(),
        ..RequestInfo::default()
    }
}

#[test]
fn users_times_verbs_times_resources_times_names_times_namespaces() {
    let policy = example();
    let alice = user("alice", &["system:authenticated"]);
    let alice_in_devs = user("alice", &["devs"]);
    let devs = user("dora", &["devs"]);
    let robot = user("system:serviceaccount:dev:robot", &["system:serviceaccounts"]);
    let other_robot = user("system:serviceaccount:prod:robot", &[]);
    let auditor = user("x", &["auditors"]);
    let bob = user("bob", &[]);
    // A group is not a user of the same name.
    let impostor = user("devs", &["alice"]);
    for (user, verb, namespace, resource, name, allowed) in [
        (&alice, "get", "dev", "pods", "p", true),
        (&alice, "deletecollection", "dev", "pods", "", true),
        (&alice, "create", "dev", "services", "", true),
        (&alice, "get", "dev", "pods/log", "p", true),
        (&alice, "create", "dev", "pods/exec", "p", false),
        (&alice, "get", "dev", "secrets", "s", false),
        (&alice, "get", "prod", "pods", "p", false),
        (&alice, "list", "", "pods", "", false),
        (&alice_in_devs, "list", "", "pods", "", true),
        (&alice_in_devs, "delete", "dev", "pods", "p", true),
        (&alice_in_devs, "delete", "prod", "pods", "p", false),
        (&devs, "watch", "", "pods", "", true),
        (&devs, "get", "prod", "pods", "p", true),
        (&devs, "get", "nonexistent", "pods", "p", true),
        (&devs, "update", "dev", "pods", "p", false),
        (&robot, "get", "dev", "pods", "p", true),
        (&robot, "get", "prod", "pods", "p", true),
        (&robot, "get", "test", "pods", "p", false),
        (&robot, "list", "", "pods", "", false),
        (&other_robot, "get", "prod", "pods", "p", false),
        (&auditor, "get", "prod", "secrets", "seal", true),
        (&auditor, "get", "prod", "secrets", "other", false),
        (&auditor, "list", "prod", "secrets", "", false),
        (&auditor, "get", "dev", "secrets", "seal", false),
        (&bob, "get", "prod", "secrets", "seal", true),
        (&impostor, "get", "dev", "pods", "p", false),
        (&user("lost", &[]), "get", "dev", "pods", "p", false),
        (&user("system:serviceaccount::lost", &[]), "get", "dev", "pods", "p", false),
        (&user("eve", &["ghosts"]), "get", "dev", "pods", "p", false),
        (&user("mallory", &[]), "get", "dev", "pods", "p", false),
        (&user("", &[]), "get", "dev", "pods", "p", false),
    ] {
        let request = request(verb, namespace, resource, name);
        assert_eq!(
            policy.decide(user, &request).is_ok(),
            allowed,
            "{} {verb} {resource} {name} in {namespace}",
            user.name
        );
    }
}

#[test]
fn a_binding_counts_once_and_names_its_first_subject() {
    let mut policy = example();
    bind(
        &mut policy,
        "twice",
        binding("dev", "ClusterRole", "reader", &["Group devs", "User alice", "Group devs"]),
    );
    let alice = user("alice", &["devs"]);
    let granted = policy.granted(&alice, "dev");
    let texts: Vec<String> =
        granted.iter().map(|granted| granted.binding.describe(granted.subject)).collect();
    assert_eq!(
        texts,
        [
            r#"ClusterRoleBinding "devs-read" of ClusterRole "reader" to Group "devs""#,
            r#"RoleBinding "alice-edits/dev" of Role "editor" to User "alice""#,
            r#"RoleBinding "twice/dev" of ClusterRole "reader" to Group "devs""#,
        ]
    );
    assert_eq!(policy.granted(&alice, "").len(), 1);
    let robot = user("system:serviceaccount:dev:robot", &[]);
    let granted = policy.granted(&robot, "prod");
    let text = granted[0].binding.describe(granted[0].subject);
    assert_eq!(text, r#"RoleBinding "robot/prod" of ClusterRole "reader" to ServiceAccount "robot/dev""#);
}

#[test]
fn roles_that_are_missing_are_named() {
    let policy = example();
    let missing = |name: &str| {
        let user = user(name, &[]);
        policy
            .granted(&user, "")
            .into_iter()
            .next()
            .and_then(|granted| granted.rules.err())
            .map(|m| m.to_string())
    };
    assert_eq!(missing("eve").as_deref(), Some(r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#));
    assert_eq!(missing("mallory").as_deref(), Some(r#"role.rbac.authorization.k8s.io "editor" not found"#));
    let odd = RoleRef { kind: "Roll".to_owned(), ..RoleRef::default() };
    let text = policy.rules_of(&odd, "dev").expect_err("no such kind").to_string();
    assert_eq!(text, r#"unsupported role reference kind: "Roll""#);
}

/// The answer is the same whether the bindings are few, and looked at one by one, or many, and in an index; also after a
/// role changed while the index was there.
#[test]
fn many_bindings_decide_as_few_do() {
    let verbs = ["get", "list", "*", "delete"];
    let resources = ["pods", "pods/log", "*/log", "*", "services", "*/scale"];
    let made = |at: usize, verb: usize| {
        let names = if at.is_multiple_of(5) { "a" } else { "" };
        let mut rule = rule(verbs[verb % 4], resources[at % 6], names);
        if at.is_multiple_of(7) {
            rule.non_resource_urls = vec![format!("/{at}/*")];
        }
        role(&[rule])
    };
    let who = user("x", &["many"]);
    let mut asked: Vec<RequestInfo> = Vec::new();
    for (verb, resource) in
        [("get", "pods"), ("delete", "pods/log"), ("list", "services"), ("get", "x/scale"), ("put", "x")]
    {
        asked.extend(["a", "b"].map(|name| request(verb, "n", resource, name)));
    }
    asked.push(RequestInfo { verb: "get".into(), path: "/14/x".to_owned(), ..RequestInfo::default() });
    // Any two of them alone, and all of them together: together they allow what any pair allows.
    for first in 0..20 {
        let (mut few, mut many) = (Policy::default(), Policy::default());
        for at in 0..40 {
            let place = place("", &at.to_string());
            // All but two give nothing, so that the two decide.
            let given = if at == first || at == first + 9 { made(at, at) } else { role(&[]) };
            many.set_role(place.clone(), Some(given.clone()));
            bind(&mut many, &at.to_string(), binding("", "ClusterRole", &at.to_string(), &["Group many"]));
            if at == first || at == first + 9 {
                few.set_role(place, Some(given));
                bind(&mut few, &at.to_string(), binding("", "ClusterRole", &at.to_string(), &["Group many"]));
            }
        }
        for verb in 0..3 {
            for request in &asked {
                assert_eq!(
                    many.decide(&who, request),
                    few.decide(&who, request),
                    "{first} {verb} {request:?}"
                );
            }
            for policy in [&mut few, &mut many] {
                policy.set_role(place("", &first.to_string()), Some(made(first, first + verb)));
            }
        }
        for policy in [&mut few, &mut many] {
            policy.set_role(place("", &first.to_string()), None);
            assert_eq!(
                policy.decide(&who, &request("put", "n", "none", "b")).err(),
                Some(Refused { dangling: true })
            );
        }
    }
}

/// A change to the policy: a role or a binding of one of a few names comes or goes.
#[derive(Debug, Clone)]
enum Change {
    Role(u8, Option<u8>),
    Binding(u8, Option<(u8, Vec<u8>)>),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..3u8, proptest::option::of(0..3u8)).prop_map(|(name, rules)| Change::Role(name, rules)),
        (0..4u8, proptest::option::of((0..3u8, vec(0..4u8, 0..4))))
            .prop_map(|(name, binding)| Change::Binding(name, binding)),
    ]
}

fn made(name: u8, role: u8, subjects: &[u8]) -> Binding {
    let subjects: Vec<&str> = subjects
        .iter()
        .map(|at| ["User a", "Group g", "ServiceAccount s", "ServiceAccount n/s"][usize::from(*at)])
        .collect();
    let namespace = if name.is_multiple_of(2) { "" } else { "n" };
    binding(namespace, "ClusterRole", &role.to_string(), &subjects)
}

fn change(policy: &mut Policy, change: &Change) {
    match change {
        Change::Role(name, rules) => {
            let rules = rules.map(|verb| role(&[rule(&verb.to_string(), "pods", "")]));
            policy.set_role(place("", &name.to_string()), rules);
        }
        Change::Binding(name, made_of) => {
            let binding = made_of.as_ref().map(|(role, subjects)| made(*name, *role, subjects));
            let namespace = if name.is_multiple_of(2) { "" } else { "n" };
            policy.set_binding(&place(namespace, &name.to_string()), binding);
        }
    }
}

proptest! {
    /// Whatever came and went: the index is as if only what is there now had ever been put in, and nothing of what is gone
    /// stays in memory.
    #[test]
    fn an_index_that_changed_is_one_made_anew(changes in vec(any_change(), 0..30)) {
        let mut policy = Policy::default();
        let mut last: BTreeMap<String, &Change> = BTreeMap::new();
        for one in &changes {
            change(&mut policy, one);
            let key = match one { Change::Role(name, _) => format!("r{name}"), Change::Binding(name, _) => format!("b{name}") };
            last.insert(key, one);
        }
        let mut anew = Policy::default();
        last.values().for_each(|one| change(&mut anew, one));
        prop_assert_eq!(policy.users.len(), anew.users.len());
        prop_assert_eq!(policy.groups.len(), anew.groups.len());
        for who in [user("a", &["g"]), user("a", &[]), user("x", &["g"]), user("system:serviceaccount:n:s", &[])] {
            for namespace in ["", "n"] {
                let shown = |policy: &Policy| {
                    let granted = policy.granted(&who, namespace);
                    granted.iter().map(|g| format!("{} {:?}", g.binding.describe(g.subject), g.rules)).collect::<Vec<_>>()
                };
                prop_assert_eq!(shown(&policy), shown(&anew));
                for verb in ["0", "1", "2"] {
                    let asked = request(verb, namespace, "pods", "p");
                    prop_assert_eq!(policy.decide(&who, &asked), anew.decide(&who, &asked));
                }
            }
        }
    }
}
