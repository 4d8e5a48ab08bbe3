//! What users may do who are not the administrator.

use std::{fs, time::Duration};

use concord_server::test_client::Protocol;
use k8s_openapi::{
    api::{
        authentication::v1::SelfSubjectReview,
        authorization::v1::{
            ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
            SelfSubjectRulesReviewSpec, SubjectAccessReviewStatus,
        },
        core::v1::{ConfigMap, Namespace, Secret},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{Program, SOON, refused};

/// A server with users whose names are their tokens.
struct Server {
    data: TempDir,
    program: Program,
}

impl Server {
    async fn start(more: &[&str]) -> Self {
        let data = tempdir().expect("a directory");
        let tokens = data.path().join("tokens.csv");
        fs::write(&tokens, "alice,alice,1,developers\nbob,bob,2\n").expect("written");
        let tokens = format!("--token-auth-file={}", tokens.display());
        let program = Program::start_with(data.path(), &[&[tokens.as_str()], more].concat()).await;
        program.ready(200).await;
        Self { data, program }
    }

    async fn config(&self) -> Config {
        let kubeconfig =
            Kubeconfig::read_from(self.data.path().join("admin.kubeconfig")).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        config.expect("a configuration")
    }

    async fn admin(&self) -> Client {
        Client::try_from(self.config().await).expect("a client")
    }

    /// A user, perhaps as somebody else.
    async fn user(&self, name: &str, impersonating: Option<&str>) -> Client {
        let auth_info = AuthInfo {
            token: Some(name.to_owned().into()),
            impersonate: impersonating.map(ToOwned::to_owned),
            ..AuthInfo::default()
        };
        let mut config = self.config().await;
        config.auth_info = auth_info;
        Client::try_from(config).expect("a client")
    }

    /// The administrator as somebody else.
    async fn admin_as(&self, name: &str, groups: &[&str]) -> Client {
        let mut config = self.config().await;
        config.auth_info.impersonate = Some(name.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        Client::try_from(config).expect("a client")
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// An object of whatever type is wanted.
macro_rules! from {
    ($object:expr $(,)?) => {
        serde_json::from_value($object).expect("a good object")
    };
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

fn answer<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) -> (u16, String) {
    match outcome.expect_err("refused") {
        kube::Error::Api(status) => (status.code, status.message),
        other => panic!("not an answer of the server: {other}"),
    }
}

async fn namespace(client: &Client, name: &str) {
    let namespace = Namespace { metadata: named(name), ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
}

async fn can_i(client: &Client, verb: &str, resource: &str, namespace: &str) -> SubjectAccessReviewStatus {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let review = Api::all(client.clone()).create(&PostParams::default(), &review).await;
    review.expect("everybody may ask").status.expect("an answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_come_and_go_with_bindings() {
    let server = Server::start(&[]).await;
    let (admin, alice) = (server.admin().await, server.user("alice", None).await);
    namespace(&admin, "dev").await;
    let post = PostParams::default();
    let maps: Api<ConfigMap> = Api::namespaced(alice.clone(), "dev");
    let no_maps = r#"configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace "dev""#;
    assert_eq!(answer(maps.list(&ListParams::default()).await), (403, no_maps.to_owned()));
    assert!(!can_i(&alice, "list", "configmaps", "dev").await.allowed);

    let bindings: Api<RoleBinding> = Api::namespaced(admin.clone(), "dev");
    for _ in 0..20 {
        bindings.create(&post, &from!(binding("alice", "view", "alice"))).await.expect("bound");
        maps.list(&ListParams::default()).await.expect("a right is there once it is acknowledged");
        bindings.delete("alice", &DeleteParams::default()).await.expect("unbound");
        assert_eq!(answer(maps.list(&ListParams::default()).await).0, 403, "and gone at once");
    }
    bindings.create(&post, &from!(binding("alice", "view", "alice"))).await.expect("bound");
    let status = can_i(&alice, "list", "configmaps", "dev").await;
    let reason = r#"RBAC: allowed by RoleBinding "alice/dev" of ClusterRole "view" to User "alice""#;
    assert_eq!((status.allowed, status.reason.as_deref()), (true, Some(reason)));
    assert!(!can_i(&alice, "list", "configmaps", "default").await.allowed);
    assert!(!can_i(&alice, "create", "configmaps", "dev").await.allowed);
    let secrets: Api<Secret> = Api::namespaced(alice.clone(), "dev");
    assert_eq!(answer(secrets.list(&ListParams::default()).await).0, 403, "to view is not to read secrets");

    let spec = SelfSubjectRulesReviewSpec { namespace: Some("dev".to_owned()) };
    let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let rules = Api::all(alice.clone()).create(&post, &review).await.expect("everybody may ask");
    let rules = rules.status.expect("an answer");
    let about = |resource: &str| {
        rules.resource_rules.iter().any(|rule| rule.resources.iter().flatten().any(|item| item == resource))
    };
    assert!(about("configmaps") && about("selfsubjectreviews") && !about("secrets") && !rules.incomplete);

    // A role that is not there grants nothing, and is named.
    let everywhere: Api<ClusterRoleBinding> = Api::all(admin.clone());
    everywhere.create(&post, &from!(binding("bob", "no-such-role", "bob"))).await.expect("bound");
    let bob: Api<ConfigMap> = Api::namespaced(server.user("bob", None).await, "dev");
    let (code, message) = answer(bob.get("x").await);
    let missing = r#": RBAC: clusterrole.rbac.authorization.k8s.io "no-such-role" not found"#;
    assert!(code == 403 && message.ends_with(missing), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_more_rights_by_themselves() {
    let server = Server::start(&[]).await;
    let (admin, alice) = (server.admin().await, server.user("alice", None).await);
    namespace(&admin, "dev").await;
    let post = PostParams::default();
    let bindings: Api<RoleBinding> = Api::namespaced(admin.clone(), "dev");
    // The rules of admin are those of others, which have to be brought together first.
    bindings.create(&post, &from!(binding("alice", "admin", "alice"))).await.expect("bound");
    let brought_together = async {
        while !can_i(&alice, "list", "configmaps", "dev").await.allowed {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, brought_together).await.expect("in time");
    let (own_roles, own_bindings): (Api<Role>, Api<RoleBinding>) =
        (Api::namespaced(alice.clone(), "dev"), Api::namespaced(alice.clone(), "dev"));
    let role = |name: &str, resource: &str| -> Role {
        from!(
            json!({"metadata": {"name": name}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}]}),
        )
    };
    own_roles.create(&post, &role("reads", "configmaps")).await.expect("she has that");
    own_bindings.create(&post, &from!(binding("bob", "view", "bob"))).await.expect("she has that");
    let not_held = "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}";
    let (code, message) = answer(own_roles.create(&post, &role("nodes", "nodes")).await);
    assert_eq!(code, 403);
    assert_eq!(
        message,
        format!(
            "roles.rbac.authorization.k8s.io \"nodes\" is forbidden: user \"alice\" (groups=[\"developers\" \"system:authenticated\"]) {not_held}"
        )
    );
    let patch =
        Patch::Merge(json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}]}));
    assert_eq!(answer(own_roles.patch("reads", &PatchParams::default(), &patch).await).0, 403);
    let (code, message) =
        answer(own_bindings.create(&post, &from!(binding("up", "cluster-admin", "alice"))).await);
    assert!(code == 403 && message.contains("not currently held"), "{message}");
    assert!(own_bindings.get_opt("up").await.expect("readable").is_none(), "nothing was stored");
    let cluster: Api<ClusterRole> = Api::all(alice.clone());
    assert_eq!(
        answer(cluster.create(&post, &from!(json!({"metadata": {"name": "x"}, "rules": []}))).await).0,
        403
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_others_only_where_they_may() {
    let server = Server::start(&[]).await;
    let admin = server.admin().await;
    let post = PostParams::default();
    let who = |client: Client| async move {
        let review = Api::all(client).create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let user = review?.status.and_then(|status| status.user_info).unwrap_or_default();
        Ok::<_, kube::Error>((user.username.unwrap_or_default(), user.groups.unwrap_or_default()))
    };
    let (name, groups) = who(server.admin_as("carol", &["ops"]).await).await.expect("the administrator may");
    assert_eq!((&*name, groups), ("carol", vec!["ops".to_owned(), "system:authenticated".to_owned()]));
    let carol: Api<ConfigMap> = Api::namespaced(server.admin_as("carol", &[]).await, "default");
    let message = answer(carol.list(&ListParams::default()).await).1;
    assert!(message.contains(r#"User "carol" cannot list"#), "{message}");

    let refusal = answer(who(server.user("alice", Some("bob")).await).await);
    let text = r#"selfsubjectreviews.authentication.k8s.io is forbidden: User "alice" cannot impersonate-on:user-info:create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope"#;
    assert_eq!(refusal, (403, text.to_owned()));
    let rules = json!([{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]}]);
    let role: ClusterRole = from!(json!({"metadata": {"name": "as-bob"}, "rules": rules}));
    Api::all(admin.clone()).create(&post, &role).await.expect("created");
    let bound: ClusterRoleBinding = from!(binding("as-bob", "as-bob", "alice"));
    Api::all(admin.clone()).create(&post, &bound).await.expect("bound");
    assert_eq!(who(server.user("alice", Some("bob")).await).await.expect("she may now").0, "bob");
    assert_eq!(answer(who(server.user("alice", Some("eve")).await).await).0, 403);
    // Being bob does not make her a master.
    let mut config = server.config().await;
    config.auth_info = AuthInfo {
        token: Some("alice".to_owned().into()),
        impersonate: Some("bob".to_owned()),
        impersonate_groups: Some(vec!["system:masters".to_owned()]),
        ..AuthInfo::default()
    };
    assert_eq!(answer(who(Client::try_from(config).expect("a client")).await).0, 403);
}

#[tokio::test]
async fn modes_decide_as_they_are_called() {
    let allowing = Server::start(&["--authorization-mode=AlwaysAllow"]).await;
    let alice = allowing.user("alice", None).await;
    Api::<Secret>::all(alice).list(&ListParams::default()).await.expect("everything is allowed");
    assert_eq!(allowing.program.get(Protocol::Http2, "/apis").await.status, 200);
    let data = tempdir().expect("a directory");
    let told = refused(data.path(), &["--authorization-mode=Webhook"]).await.stderr;
    assert!(told.contains("this server cannot ask others"), "{told}");
    let denying = Program::start_with(data.path(), &["--authorization-mode=AlwaysDeny"]).await;
    let healthz = denying.get(Protocol::Http2, "/healthz").await;
    assert!(healthz.status == 403 && healthz.body.contains("Everything is forbidden."), "{}", healthz.body);
    let admin = denying.admin(Protocol::Http2).await.get("/healthz").await.expect("an answer");
    assert_ne!(admin.status, 403, "the administrator is never refused");
}
