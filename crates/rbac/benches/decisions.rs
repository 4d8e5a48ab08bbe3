//! What a decision costs, and what a change of the rules costs, at the sizes that a large cluster has.

use std::sync::Arc;

use concord_rbac::{Rbac, RulesView};
use concord_replica::{Event, EventKind, View as _};
use concord_server::{Attributes, Authorizer as _, RequestInfo, UserInfo};
use concord_store::KeyValue;
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn event(revision: u64, key: &str, object: &Value) -> Event {
    let entry = KeyValue {
        key: format!("/registry/{key}").into(),
        value: object.to_string().into(),
        create_revision: revision,
        mod_revision: revision,
    };
    Event { revision, kind: EventKind::Created(Arc::new(entry)) }
}

fn role(at: usize) -> Event {
    let rules = json!([
        {"verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"], "resources": [format!("r{at}"), "deployments"]},
        {"verbs": ["create", "update", "patch", "delete"], "apiGroups": [""], "resources": [format!("r{at}/status")]},
    ]);
    let object = json!({"metadata": {"name": format!("role-{at}")}, "rules": rules});
    event(1, &format!("clusterroles/role-{at}"), &object)
}

fn binding(at: usize, roles: usize, subject: &Value) -> Event {
    let name = format!("binding-{at}");
    let role = json!({"kind": "ClusterRole", "name": format!("role-{}", at % roles)});
    let namespace = format!("namespace-{}", at % 100);
    let object =
        json!({"metadata": {"name": name, "namespace": namespace}, "roleRef": role, "subjects": [subject]});
    match at % 2 {
        0 => event(2, &format!("clusterrolebindings/{name}"), &object),
        _ => event(2, &format!("rolebindings/{namespace}/{name}"), &object),
    }
}

fn own_user(at: usize) -> Value {
    json!({"kind": "User", "name": format!("user-{at}")})
}

fn everybody(_: usize) -> Value {
    json!({"kind": "Group", "name": "system:authenticated"})
}

fn view(roles: usize, bindings: usize, subject: fn(usize) -> Value) -> RulesView {
    let mut view = RulesView::new("/registry/");
    let events: Vec<Event> = (0..roles).map(role).collect();
    view.apply(1, &events);
    let events: Vec<Event> = (0..bindings).map(|at| binding(at, roles, &subject(at))).collect();
    view.apply(2, &events);
    view
}

fn decide(bencher: Bencher<'_, '_>, view: &RulesView, user: &str, resource: &str, allowed: bool) {
    let rbac = Rbac::new(view);
    let groups = ["devs", "ops", "everybody", "system:authenticated"].map(ToOwned::to_owned).to_vec();
    let user = UserInfo { name: user.to_owned(), groups, ..UserInfo::default() };
    let request = RequestInfo {
        is_resource_request: true,
        verb: "get".into(),
        namespace: "namespace-11".to_owned(),
        resource: resource.to_owned(),
        name: "x".to_owned(),
        ..RequestInfo::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    bencher.bench_local(|| {
        let attributes = Attributes { user: black_box(&user), request: black_box(&request) };
        let decision = runtime.block_on(rbac.authorize(&attributes));
        assert_eq!(decision.is_allowed(), allowed);
    });
}

/// A user with one binding of its own among a thousand.
#[divan::bench]
fn allowed_by_one_of_1000_bindings(bencher: Bencher<'_, '_>) {
    decide(bencher, &view(1000, 1000, own_user), "user-511", "r511", true);
}

/// The same user, for what it may not do: nothing may be left unlooked at.
#[divan::bench]
fn refused_with_1000_bindings(bencher: Bencher<'_, '_>) {
    decide(bencher, &view(1000, 1000, own_user), "user-511", "secrets", false);
}

/// The worst case: all thousand bindings are for a group of the user, and none of them allows it.
#[divan::bench]
fn refused_by_1000_bindings_of_ones_group(bencher: Bencher<'_, '_>) {
    decide(bencher, &view(1000, 1000, everybody), "nobody", "secrets", false);
}

/// One binding comes or changes while there are ten thousand.
#[divan::bench(args = [1000, 10_000])]
fn a_binding_changes(bencher: Bencher<'_, '_>, bindings: usize) {
    let mut view = view(1000, bindings, own_user);
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 7) % bindings;
        view.apply(3, &[binding(at, 1000, &own_user(at + 1))]);
    });
}

/// One binding of a group that has ten thousand.
#[divan::bench(args = [10_000])]
fn a_binding_of_a_large_group_changes(bencher: Bencher<'_, '_>, bindings: usize) {
    let mut view = view(1000, bindings, everybody);
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 7) % bindings;
        view.apply(3, &[binding(at, 1000, &everybody(at))]);
    });
}

/// A role changes that ten thousand bindings refer to.
#[divan::bench(args = [10_000])]
fn a_role_of_all_changes(bencher: Bencher<'_, '_>, bindings: usize) {
    let mut view = view(1, bindings, own_user);
    bencher.bench_local(|| view.apply(3, &[role(0)]));
}
