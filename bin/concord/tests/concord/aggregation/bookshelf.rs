//! The example extension server, used as everything else.

use std::{
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use concord_bookshelf::{Bookshelf, Options};
use concord_pki::FrontProxyPki;
use concord_server::test_client::{Protocol, Target};
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::Method;
use kube::{
    Api,
    api::{
        ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
        WatchParams,
    },
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::{sync::oneshot, task::JoinHandle};

use super::{API_SERVICES, condition, parse, until};
use crate::support::{Program, SOON, client, send};

pub(super) const NAME: &str = "v1.library.example.com";
pub(super) const BOOKS: &str = "/apis/library.example.com/v1/namespaces/default/books";

/// A server, and a bookshelf behind it.
pub(crate) struct World {
    pub(crate) data: TempDir,
    pub(crate) program: Program,
    pub(crate) shelf: Shelf,
}

pub(crate) struct Shelf {
    pub(crate) address: std::net::SocketAddr,
    pub(super) api_service: Value,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    data: TempDir,
}

impl Shelf {
    pub(super) async fn start(front_proxy_ca: &Path) -> Self {
        let data = tempdir().expect("a directory");
        let options = Options {
            data_dir: data.path().to_owned(),
            address: "127.0.0.1:0".parse().expect("an address"),
            front_proxy_ca: front_proxy_ca.to_owned(),
            service: ("default".to_owned(), "bookshelf".to_owned()),
        };
        let shelf = Bookshelf::open(options).await.expect("a bookshelf");
        let (address, api_service) = (shelf.address(), shelf.api_service());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(shelf.run(async { drop(stopped.await) }));
        Self { address, api_service, stop, task, data }
    }

    pub(super) async fn stop(self) {
        self.stop.send(()).expect("it runs");
        tokio::time::timeout(SOON, self.task).await.expect("it ends").expect("without a panic");
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with a server that has flags of its own.
    pub(super) async fn start_with(flags: &[&str]) -> Self {
        let data = tempdir().expect("a directory");
        // Whom the bookshelf believes is known before either runs.
        let pki = data.path().join("pki");
        FrontProxyPki::open_or_create(&pki, SystemTime::now()).expect("a PKI");
        let shelf = Shelf::start(&pki.join("front-proxy-ca.crt")).await;
        let address = format!("--service-address=default/bookshelf={}", shelf.address);
        let program = Program::start_with(data.path(), &[flags, &[address.as_str()]].concat()).await;
        program.ready(200).await;
        let world = Self { data, program, shelf };
        let mut admin = world.program.admin(Protocol::Http2).await;
        let (status, answer, _) =
            send(&mut admin, Method::POST, API_SERVICES, &world.shelf.api_service).await;
        assert_eq!(status, 201, "{answer}");
        assert_eq!(condition(&mut admin, NAME, "True", "Passed").await, "all checks passed");
        world
    }
}

fn books(client: kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("library.example.com", "v1", "Book");
    Api::default_namespaced_with(client, &ApiResource::from_gvk_with_plural(&kind, "books"))
}

fn book(name: &str, spec: &Value) -> DynamicObject {
    let book = json!({
        "apiVersion": "library.example.com/v1", "kind": "Book", "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(book).expect("a book")
}

#[tokio::test]
async fn its_books_are_used_with_kube_rs() {
    let world = World::start().await;
    let books = books(client(world.data.path()).await);
    let mut events = books.watch(&WatchParams::default(), "0").await.expect("a watch").boxed();

    let made =
        books.create(&PostParams::default(), &book("dune", &json!({"title": "Dune", "pages": 412}))).await;
    let made = made.expect("a book");
    assert_eq!(
        made.data["spec"],
        json!({"title": "Dune", "pages": 412, "shelf": "fiction"}),
        "with its default"
    );
    let wrong =
        books.create(&PostParams::default(), &book("none", &json!({"title": "", "shelf": "cellar"}))).await;
    let wrong = wrong.expect_err("it is no book").to_string();
    assert!(wrong.contains("spec.title") && wrong.contains("spec.shelf"), "{wrong}");

    let lent = json!({"status": {"lentTo": "ann"}});
    let lent =
        books.patch_status("dune", &PatchParams::default(), &Patch::Merge(&lent)).await.expect("a book");
    assert_eq!(lent.data["status"]["lentTo"], "ann");
    let renamed = json!({"spec": {"title": "Dune II"}});
    let renamed = books.patch("dune", &PatchParams::default(), &Patch::Merge(&renamed)).await;
    assert!(renamed.expect_err("it keeps its title").to_string().contains("a book keeps its title"));
    assert_eq!(books.list(&ListParams::default()).await.expect("a list").items.len(), 1);
    books.delete("dune", &DeleteParams::default()).await.expect("deleted");

    let mut seen = Vec::new();
    while seen.last() != Some(&"deleted") {
        let event = tokio::time::timeout(SOON, events.try_next()).await.expect("in time").expect("an event");
        seen.push(match event.expect("the watch goes on") {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => continue,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["added", "modified", "deleted"]);
}

#[tokio::test]
async fn its_group_is_shown_in_its_place_and_gone_with_its_api_service() {
    let world = World::start().await;
    let mut admin = world.program.admin(Protocol::Http2).await;
    let groups = parse(&admin.get("/apis").await.expect("an answer").body);
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .filter_map(|group| group["name"].as_str())
        .collect();
    assert_eq!(names.last(), Some(&"library.example.com"), "the lowest priority of all comes last");
    let group = parse(&admin.get("/apis/library.example.com").await.expect("an answer").body);
    assert_eq!(group["preferredVersion"]["groupVersion"], "library.example.com/v1");
    let is_shown = |_, body: &str| {
        let document = parse(body);
        let paths = &document["paths"]["apis/library.example.com/v1"];
        paths["serverRelativeURL"].is_string()
    };
    let index = parse(&until(&mut admin, "/openapi/v3", "its document is published", is_shown).await);
    let url = index["paths"]["apis/library.example.com/v1"]["serverRelativeURL"].as_str().expect("a URL");
    let document = parse(&admin.get(url).await.expect("an answer").body);
    let kind = &document["components"]["schemas"]["com.example.library.v1.Book"];
    assert_eq!(kind["properties"]["spec"]["properties"]["title"]["description"], "What it is called.");

    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let accept = [("accept", aggregated)];
    let entry = |body: &str| -> Value {
        let document = parse(body);
        let items = document["items"].as_array().expect("items");
        items
            .iter()
            .find(|item| item["metadata"]["name"] == "library.example.com")
            .cloned()
            .unwrap_or_default()
    };
    let begin = std::time::Instant::now();
    loop {
        let answer = admin.exchange(Method::GET, "/apis", &accept, "".into()).await.expect("an answer");
        let version = &entry(&answer.body)["versions"][0];
        if version["freshness"] == "Current" {
            assert_eq!(version["resources"][0]["resource"], "books");
            assert_eq!(version["resources"][0]["subresources"][0]["subresource"], "status");
            break;
        }
        assert!(begin.elapsed() < SOON, "not in time: {}", answer.body);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // Nobody else is believed about who asks, and nobody comes in without a name.
    let mut stranger =
        Target::new(world.shelf.address, &world.shelf.data.path().join("pki/ca.crt"), Protocol::Http2)
            .connect()
            .await
            .expect("a connection");
    let headers = [("x-remote-user", "ann"), ("x-remote-group", "system:masters")];
    let refused = stranger.exchange(Method::GET, BOOKS, &headers, "".into()).await.expect("an answer");
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(world.program.get(Protocol::Http2, BOOKS).await.status, 403);

    let service = format!("{API_SERVICES}/{NAME}");
    assert_eq!(send(&mut admin, Method::DELETE, &service, &Value::Null).await.0, 200);
    assert_eq!(admin.get(BOOKS).await.expect("an answer").status, 404);
    assert_eq!(admin.get("/apis/library.example.com").await.expect("an answer").status, 404);
    let index = parse(&admin.get("/openapi/v3").await.expect("an answer").body);
    assert!(index["paths"].get("apis/library.example.com/v1").is_none());
}

#[tokio::test]
async fn when_it_stops_that_is_told_and_everything_else_goes_on() {
    let World { data: _data, program, shelf } = World::start().await;
    let mut admin = program.admin(Protocol::Http2).await;
    assert_eq!(admin.get(BOOKS).await.expect("an answer").status, 200);
    shelf.stop().await;
    let answer = admin.get(BOOKS).await.expect("an answer");
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.body.starts_with("error trying to reach service: "), "{}", answer.body);
    let message = condition(&mut admin, NAME, "False", "FailedDiscoveryCheck").await;
    assert!(message.starts_with("failing or missing response from https://127.0.0.1:"), "{message}");
    assert!(message.contains("connect: connection refused"), "{message}");
    let answer = admin.get(BOOKS).await.expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (503, "service unavailable\n"));
    for path in ["/api/v1/namespaces", "/apis", "/openapi/v3"] {
        assert_eq!(admin.get(path).await.expect("an answer").status, 200, "{path}");
    }
}

/// The bookshelf runs in this process, and must while kubectl is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_books_are_used_with_kubectl() {
    let kubectl = |kubeconfig: &Path, arguments: &[&str]| {
        let mut command = Command::new("kubectl");
        let cache = kubeconfig.with_file_name("cache");
        command.arg("--kubeconfig").arg(kubeconfig).arg("--cache-dir").arg(cache).args(arguments).output()
    };
    if !Command::new("kubectl").args(["version", "--client"]).output().is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: there is no kubectl on PATH");
        return;
    }
    let world = World::start().await;
    let mut admin = world.program.admin(Protocol::Http2).await;
    let is_shown = |_, body: &str| body.contains("apis/library.example.com/v1");
    until(&mut admin, "/openapi/v3", "its document is published", is_shown).await;
    let kubeconfig = world.data.path().join("admin.kubeconfig");
    let run = |arguments: &[&str]| {
        let out = kubectl(&kubeconfig, arguments).expect("kubectl runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.success(), text(&out.stdout) + &text(&out.stderr))
    };
    let file = world.data.path().join("book.json");
    std::fs::write(&file, serde_json::to_vec(&book("emma", &json!({"title": "Emma"}))).expect("JSON"))
        .expect("written");
    let file = file.to_str().expect("text");
    let (done, said) = run(&["apply", "-f", file]);
    assert!(done && said.contains("book.library.example.com/emma created"), "{said}");
    let (done, said) = run(&["get", "bk"]);
    assert!(done && said.contains("TITLE") && said.contains("Emma"), "{said}");
    let (done, said) = run(&["explain", "book.spec"]);
    assert!(done && said.contains("What it is called.") && said.contains("shelf"), "{said}");
    let (done, said) = run(&["get", "apiservice", NAME]);
    assert!(done && said.contains("default/bookshelf") && said.contains("True"), "{said}");
    let odd = json!({"apiVersion": "library.example.com/v1", "kind": "Book", "metadata": {"name": "odd"}, "spec": {"titel": "Emma"}});
    std::fs::write(file, odd.to_string()).expect("written");
    let (done, said) = run(&["create", "-f", file]);
    assert!(!done && said.contains("unknown field \"spec.titel\""), "{said}");
    let (done, said) = run(&["delete", "book", "emma"]);
    assert!(done, "{said}");
}
