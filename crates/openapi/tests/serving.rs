//! How documents are served: hashes, caching, negotiation, and what changes when the APIs do.

mod support;

use std::{
    io::Read as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use concord_apis::{Settings, api_set};
use concord_endpoints::{ApiGroup, ApiSet, ApiVersion, Origin};
use concord_meta::GroupVersion;
use concord_openapi::{Contents, OpenApi};
use flate2::read::GzDecoder;
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// What is served, which a test can change.
#[derive(Clone)]
struct Server {
    set: Arc<Mutex<Arc<ApiSet>>>,
    openapi: Arc<OpenApi>,
}

impl Server {
    fn new() -> Self {
        let set = Arc::new(Mutex::new(Arc::new(api_set(&Settings::default()))));
        let source = set.clone();
        Self { set, openapi: Arc::new(support::openapi(move || source.lock().clone())) }
    }

    fn change(&self, change: impl FnOnce(&ApiSet) -> ApiSet) {
        let mut set = self.set.lock();
        *set = Arc::new(change(&set));
    }

    async fn answer(&self, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
        support::ask(&self.openapi, path, headers).await
    }

    async fn urls(&self) -> Vec<(String, String)> {
        let (_, _, index) = self.answer("/openapi/v3", &[]).await;
        let index: Value = serde_json::from_slice(&index).expect("JSON");
        let paths = index["paths"].as_object().expect("paths").clone();
        let url = |entry: Value| entry["serverRelativeURL"].as_str().expect("an address").to_owned();
        paths.into_iter().map(|(key, entry)| (key, url(entry))).collect()
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().expect("text"))
}

#[tokio::test]
async fn the_index_leads_to_documents_that_can_be_kept() {
    let server = Server::new();
    let urls = server.urls().await;
    for key in ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"] {
        let (_, url) = urls.iter().find(|(known, _)| known == key).expect(key);
        let hash = url.strip_prefix(&format!("/openapi/v3/{key}?hash=")).expect("a hash");
        assert_eq!(hash.len(), 128, "{url}");
        let (status, headers, body) = server.answer(url, &[]).await;
        assert_eq!((status, header(&headers, "content-type")), (200, "application/json"));
        assert_eq!(header(&headers, "cache-control"), "public, immutable");
        assert!(header(&headers, "expires").ends_with(" GMT"), "{headers:?}");
        assert_eq!(header(&headers, "etag"), format!("\"{hash}\""));
        assert_eq!(header(&headers, "vary"), "Accept");
        let document: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((&document["openapi"], &document["info"]["version"]), (&"3.0.0".into(), &"1.36".into()));
    }
}

#[tokio::test]
async fn without_its_hash_a_document_is_asked_for_again() {
    let server = Server::new();
    let path = "/openapi/v3/apis/apps/v1";
    for plain in [path, "/openapi/v3/apis/apps/v1?hash=", "/openapi/v3/apis%2Fapps/v1?timeout=32s"] {
        let (status, headers, _) = server.answer(plain, &[]).await;
        assert_eq!((status, header(&headers, "cache-control")), (200, ""), "{plain}");
        assert!(!headers.contains_key("expires"));
    }
}

/// Whoever asks for a part is given the whole, which is what an answer that offers no ranges means.
#[tokio::test]
async fn documents_come_whole() {
    let server = Server::new();
    let urls = server.urls().await;
    let (_, leaf) = urls.iter().find(|(key, _)| key == "apis/apps/v1").expect("apps");
    for path in ["/openapi/v3", "/openapi/v2", "/openapi/v3/apis/apps/v1", leaf] {
        let (_, _, whole) = server.answer(path, &[]).await;
        for range in ["bytes=0-9", "bytes=-5", "bytes=999999999-", "lines=1"] {
            let (status, headers, body) =
                server.answer(path, &[("range", range), ("if-range", "\"other\"")]).await;
            assert_eq!((status, body == whole), (200, true), "{path} {range}");
            assert!(
                !headers.contains_key("accept-ranges") && !headers.contains_key("content-range"),
                "{path}"
            );
        }
    }
    // Nobody who has it is sent it again, and what may be kept is said again.
    let (_, hash) = leaf.split_once("?hash=").expect("a hash");
    let (status, headers, body) = server.answer(leaf, &[("if-none-match", &format!("\"{hash}\""))]).await;
    assert_eq!((status, body.len(), header(&headers, "cache-control")), (304, 0, "public, immutable"));
    assert!(header(&headers, "expires").ends_with(" GMT"), "{headers:?}");
}

#[tokio::test]
async fn who_has_an_old_hash_is_sent_to_the_new_one() {
    let server = Server::new();
    let (_, url) = server.urls().await.into_iter().find(|(key, _)| key == "apis/apps/v1").expect("apps");
    let (status, headers, body) = server.answer("/openapi/v3/apis/apps/v1?hash=OLD&timeout=32s", &[]).await;
    assert_eq!((status, header(&headers, "location"), body.len()), (301, url.as_str(), 0));
    assert_eq!(header(&headers, "cache-control"), "");
    let (status, ..) = server.answer(&url.to_lowercase(), &[]).await;
    assert_eq!(status, 301);
    // What the client knows does not matter: it asked for something else.
    let etag = header(&headers, "etag");
    let stale = server.answer("/openapi/v3/apis/apps/v1?hash=OLD", &[("if-none-match", etag)]).await;
    assert_eq!(stale.0, 301);
}

/// Behind a load balancer in front of two releases, neither of which knows the hashes of the other.
#[tokio::test]
async fn who_was_sent_on_once_is_not_sent_on_again() {
    let of = |release: &str| {
        let set = Arc::new(api_set(&Settings::default()));
        support::openapi_of(release, move || set.clone(), concord_builtins::annotations)
    };
    let (old, new) = (of("1.35"), of("1.36"));
    let path = "/openapi/v3/apis/apps/v1";
    for (from, to, release) in [(&old, &new, "1.36"), (&new, &old, "1.35")] {
        let stale = format!("{path}?hash=OLD");
        let (status, headers, _) = support::ask(from, &stale, &[]).await;
        let location = header(&headers, "location");
        assert_eq!(status, 301);
        // Go's client says from where it was sent.
        let referer = format!("https://balancer.example/prefix{stale}");
        let (status, headers, body) = support::ask(to, location, &[("referer", &referer)]).await;
        let document: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, &document["info"]["version"]), (200, &release.into()));
        assert_eq!(header(&headers, "cache-control"), "", "nobody keeps it for what the other release has");
        assert_eq!(header(&headers, "etag"), format!("\"{}\"", sha512(&body)));
        let elsewhere = [("referer", "https://balancer.example/openapi/v3/api/v1?hash=OLD")];
        assert_eq!(support::ask(to, location, &elsewhere).await.0, 301);
        assert_eq!(support::ask(to, location, &[]).await.0, 301);
    }
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again() {
    let server = Server::new();
    for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"] {
        let (_, headers, _) = server.answer(path, &[]).await;
        let etag = header(&headers, "etag");
        for (known, status) in [
            (etag.to_owned(), 304),
            (format!("\"other\", W/{etag}"), 304),
            ("*".to_owned(), 304),
            ("\"other\"".to_owned(), 200),
            (etag.to_lowercase(), 200),
        ] {
            let answer = server.answer(path, &[("if-none-match", &known)]).await;
            assert_eq!((answer.0, answer.2.is_empty()), (status, status == 304), "{path} {known}");
            assert_eq!(header(&answer.1, "etag"), etag);
        }
    }
}

/// The form that clients ask for, and the one that they are told.
const ASKED: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
const TOLD: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

#[tokio::test]
async fn the_client_chooses_the_form() {
    let server = Server::new();
    for path in ["/openapi/v3/apis/apps/v1", "/openapi/v2"] {
        let version = if path.ends_with("v2") { "v2" } else { "v3" };
        for (accept, told) in
            [("", "application/json"), ("*/*", "application/json"), (ASKED, TOLD), (TOLD, TOLD)]
        {
            let (accept, told) = (accept.replace("v3", version), told.replace("v3", version));
            let (status, headers, body) = server.answer(path, &[("accept", &accept)]).await;
            assert_eq!((status, header(&headers, "content-type")), (200, told.as_str()), "{path} {accept}");
            assert!(body.len() > 1000, "{path} {accept}");
        }
        for accept in
            ["application/yaml", "application/json;q=0", ";;,", "application/vnd.kubernetes.protobuf"]
        {
            let (status, headers, body) = server.answer(path, &[("accept", accept)]).await;
            assert_eq!((status, header(&headers, "vary"), body.len()), (406, "Accept", 0), "{path} {accept}");
        }
    }
    // The index has one form, whatever is asked for.
    let (status, headers, _) = server.answer("/openapi/v3", &[("accept", ASKED)]).await;
    assert_eq!((status, header(&headers, "content-type")), (200, "application/json"));
}

#[tokio::test]
async fn compressed_documents_have_the_same_content_and_tags_of_their_own() {
    let server = Server::new();
    for path in ["/openapi/v3/apis/apps/v1", "/openapi/v2"] {
        let mut tags = Vec::new();
        for accept in ["application/json".to_owned(), ASKED.replace("v3", &path[9..11])] {
            let (_, plain_headers, plain) = server.answer(path, &[("accept", &accept)]).await;
            let asked = [("accept", accept.as_str()), ("accept-encoding", "deflate, gzip")];
            let (status, headers, body) = server.answer(path, &asked).await;
            assert_eq!((status, header(&headers, "content-encoding")), (200, "gzip"));
            let mut unpacked = Vec::new();
            GzDecoder::new(&*body).read_to_end(&mut unpacked).expect("gzip");
            assert_eq!(unpacked, plain);
            assert!(body.len() * 4 < plain.len(), "{path}: {} of {}", body.len(), plain.len());
            tags.extend([header(&plain_headers, "etag").to_owned(), header(&headers, "etag").to_owned()]);
            let vary: Vec<_> = headers.get_all("vary").iter().collect();
            assert_eq!(vary, ["Accept", "Accept-Encoding"]);
            let known = [("accept", accept.as_str()), ("if-none-match", tags[tags.len() - 1].as_str())];
            assert_eq!(server.answer(path, &known).await.0, 304);
        }
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 4, "{tags:?}");
    }
}

#[tokio::test]
async fn the_index_is_compressed_for_those_who_take_it_so() {
    let server = Server::new();
    let (_, plain_headers, plain) = server.answer("/openapi/v3", &[]).await;
    let gzip = ("accept-encoding", "gzip");
    let (status, headers, body) = server.answer("/openapi/v3", &[gzip]).await;
    assert_eq!((status, header(&headers, "content-encoding")), (200, "gzip"));
    let mut unpacked = Vec::new();
    GzDecoder::new(&*body).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, plain);
    let tag = header(&headers, "etag");
    assert_ne!(tag, header(&plain_headers, "etag"));
    let (status, headers, body) = server.answer("/openapi/v3", &[gzip, ("if-none-match", tag)]).await;
    assert_eq!((status, header(&headers, "content-encoding"), body.len()), (304, "", 0));
}

#[tokio::test]
async fn the_hash_of_every_document_is_that_of_its_bytes() {
    let server = Server::new();
    for (key, url) in server.urls().await {
        let (_, hash) = url.split_once("?hash=").expect("a hash");
        let (status, headers, body) = server.answer(&url, &[]).await;
        assert_eq!((status, header(&headers, "etag")), (200, &*format!("\"{hash}\"")), "{key}");
        assert_eq!(sha512(&body), hash, "{key}");
    }
    let (_, _, index) = server.answer("/openapi/v3", &[]).await;
    let index: Value = serde_json::from_slice(&index).expect("JSON");
    let members = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&index), ["paths"]);
    for (key, entry) in index["paths"].as_object().expect("paths") {
        assert_eq!(members(entry), ["serverRelativeURL"], "{key}");
    }
}

fn sha512(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA512, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect()
}

/// What the texts say, which a test can change as if what documents are made from were another by then.
static STATE: AtomicU32 = AtomicU32::new(0);

fn changing() -> Map<String, Value> {
    let mut texts = concord_builtins::annotations();
    let state = STATE.load(Ordering::Relaxed);
    texts.insert("io.k8s.api.core.v1.Pod".to_owned(), json!({"description": state.to_string()}));
    texts
}

#[tokio::test]
async fn nothing_is_kept_for_ever_under_the_hash_of_something_else() {
    let set = Arc::new(api_set(&Settings::default()));
    let openapi = support::openapi_with(move || set.clone(), changing);
    let index = support::get(&openapi, "/openapi/v3").await;
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().expect("an address");
    let (_, hash) = url.split_once("?hash=").expect("a hash");
    for (state, accept) in [(1, "application/json"), (2, ASKED), (3, "application/json")] {
        STATE.store(state, Ordering::Relaxed);
        let (status, headers, body) = support::ask(&openapi, url, &[("accept", accept)]).await;
        assert_eq!((status, header(&headers, "cache-control")), (200, ""), "{state}");
        assert!(!header(&headers, "etag").contains(hash), "{state}");
        if accept != ASKED {
            assert_eq!(header(&headers, "etag"), format!("\"{}\"", sha512(&body)));
        }
    }
    // It is found again as it was told.
    STATE.store(0, Ordering::Relaxed);
    let (_, headers, body) = support::ask(&openapi, url, &[]).await;
    assert_eq!((header(&headers, "cache-control"), &*sha512(&body)), ("public, immutable", hash));
}

#[tokio::test]
async fn odd_hashes_are_answered() {
    let server = Server::new();
    let long = "A".repeat(10_000);
    for hash in ["%00", "a&hash=b", "../..", "%zz", long.as_str()] {
        let (status, headers, body) = server.answer(&format!("/openapi/v3/version?hash={hash}"), &[]).await;
        assert_eq!((status, body.len()), (301, 0), "{hash}");
        assert_eq!(server.answer(header(&headers, "location"), &[]).await.0, 200);
    }
    // Version 2 has no hashes.
    assert_eq!(server.answer("/openapi/v2?hash=OLD", &[]).await.0, 200);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = Server::new();
    for path in [
        "/openapi",
        "/openapi/v2/",
        "/openapi/v2x",
        "/openapi/v3/",
        "/openapi/v3x",
        "/openapi/v3/apis/apps/v1/",
        "/openapi/v3//api/v1",
        "/openapi/v3/apis/nobody/v1",
        "/openapi/v3/apis/apps/v1beta1?hash=1",
    ] {
        assert_eq!(server.answer(path, &[]).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn groups_come_and_go_and_the_others_stay() {
    let server = Server::new();
    let before = server.urls().await;
    let version = ApiVersion::new(GroupVersion::new("lab.example.com", "v1"), []);
    let group = Arc::new(ApiGroup::new("lab.example.com", 1, Origin::Custom, [version]));
    server.change(|set| set.with_group(group));
    let with = server.urls().await;
    let added: Vec<_> =
        with.iter().filter(|entry| !before.contains(entry)).map(|(key, _)| key.as_str()).collect();
    assert_eq!(added, ["apis/lab.example.com/v1"]);
    assert_eq!(server.answer("/openapi/v3/apis/lab.example.com/v1", &[]).await.0, 200);
    server.change(|set| set.without_group("lab.example.com"));
    assert_eq!(server.urls().await, before);
    assert_eq!(server.answer("/openapi/v3/apis/lab.example.com/v1", &[]).await.0, 404);
}

/// How often texts were unpacked, which takes a while here.
static UNPACKED: AtomicU32 = AtomicU32::new(0);

fn slow_texts() -> Map<String, Value> {
    UNPACKED.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(200));
    Map::new()
}

/// What nobody waits for any more goes on, and is there for the next one, who would otherwise begin anew beside it.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_give_up_have_nothing_made_twice() {
    let mut unpacked = Vec::new();
    for impatient in [0, 5] {
        let before = UNPACKED.load(Ordering::Relaxed);
        let set = Arc::new(api_set(&Settings::default()));
        let contents = Contents {
            release: "1.36".to_owned(),
            annotations: slow_texts,
            definitions: Box::new(|_| None),
            services: Vec::new(),
        };
        let openapi = OpenApi::new(move || set.clone(), contents);
        for _ in 0..impatient {
            let asked = support::ask(&openapi, "/openapi/v2", &[]);
            assert!(timeout(Duration::from_millis(20), asked).await.is_err(), "it takes longer");
        }
        assert_eq!(support::ask(&openapi, "/openapi/v2", &[]).await.0, 200);
        unpacked.push(UNPACKED.load(Ordering::Relaxed) - before);
    }
    assert_eq!(unpacked[0], unpacked[1]);
}
