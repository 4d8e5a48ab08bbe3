//! What clients do all the time, through every server: look at discovery, and read and write what it lists.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use concord_server::test_client::{Answer, Protocol, Target, TestClient};
use http::Method;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};
use tokio::task::{JoinError, JoinSet};

use super::{AGGREGATED, Member};

/// Resources whose objects are made, read, changed and deleted for real, and what has to be in them: two that only newer
/// releases have, one that only 1.33 has, and one that all have.
const KINDS: [(&str, &str); 4] = [
    (
        "/apis/storage.k8s.io/v1/volumeattributesclasses",
        r#"{"driverName": "example.com", "parameters": {"a": "b"}}"#,
    ),
    ("/apis/resource.k8s.io/v1/deviceclasses", r#"{"spec": {}}"#),
    (
        "/apis/admissionregistration.k8s.io/v1beta1/validatingadmissionpolicybindings",
        r#"{"spec": {"policyName": "none.example.com", "validationActions": ["Audit"]}}"#,
    ),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", r#"{"spec": {}}"#),
];

/// Something that discovery lists as current.
#[derive(Clone)]
pub(super) struct Listed {
    /// Where its collection is.
    pub(super) path: String,
    verbs: Vec<String>,
}

impl Listed {
    pub(super) fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|candidate| candidate == verb)
    }
}

/// Everything in the document that is not stale.
pub(super) fn listed(document: &Value) -> Vec<Listed> {
    let mut all = Vec::new();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    for group in document["items"].as_array().expect("groups") {
        let versions = group["versions"].as_array().expect("versions").iter();
        for version in versions.filter(|version| version["freshness"] == "Current") {
            for resource in version["resources"].as_array().into_iter().flatten() {
                let namespace = if resource["scope"] == "Namespaced" { "namespaces/default/" } else { "" };
                let place =
                    format!("/apis/{}/{}", text(&group["metadata"]["name"]), text(&version["version"]));
                let path = format!("{place}/{namespace}{}", text(&resource["resource"]));
                let verbs = resource["verbs"].as_array().expect("verbs").iter().map(text).collect();
                all.push(Listed { path, verbs });
            }
        }
    }
    all
}

/// A client of one server.
struct Wanderer {
    id: &'static str,
    client: TestClient,
    random: StdRng,
    tag: String,
    listed: Vec<Listed>,
    done: usize,
    made: Made,
}

/// How many objects were made of which kind.
pub(super) type Made = BTreeMap<&'static str, usize>;

/// The server cannot be asked any more.
struct Gone;

impl Wanderer {
    /// What the server lists now.
    async fn look(&mut self) -> Result<(), Gone> {
        let headers = [("accept", AGGREGATED), ("if-none-match", self.tag.as_str())];
        let answer = self.client.exchange(Method::GET, "/apis", &headers, Bytes::new()).await;
        let answer = answer.map_err(|_| Gone)?;
        match answer.status {
            200 => {
                answer.headers["etag"].to_str().expect("text").clone_into(&mut self.tag);
                self.listed = listed(&serde_json::from_str(&answer.body).expect("JSON"));
            }
            304 | 429 | 503 => {}
            other => panic!("discovery of {}: {other} {}", self.id, answer.body),
        }
        Ok(())
    }

    /// An answer that says that nothing is there is right only if discovery does not list it any more: both come from
    /// the same picture of the fleet, and what was listed before and after was there in between.
    async fn judge(&mut self, what: &str, path: &str, answer: &Answer, fine: &[u16]) -> Result<(), Gone> {
        self.done += 1;
        let status = answer.status;
        if fine.contains(&status) || matches!(status, 429 | 503) {
            return Ok(());
        }
        assert!(matches!(status, 404 | 405), "{what} {path} through {}: {status} {}", self.id, answer.body);
        self.look().await?;
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        let is_it = |listed: &Listed| path.strip_prefix(&listed.path).is_some_and(is_below);
        let is_listed = self.listed.iter().any(is_it);
        assert!(!is_listed, "{what} {path} through {}, which lists it: {status} {}", self.id, answer.body);
        Ok(())
    }

    async fn send(&mut self, method: Method, path: &str, body: &Value) -> Result<Answer, Gone> {
        let is_patch = method == Method::PATCH;
        let kind = if is_patch { "application/merge-patch+json" } else { "application/json" };
        let headers = [("content-type", kind)];
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        self.client.exchange(method, path, &headers, body).await.map_err(|_| Gone)
    }

    /// Reads and writes something that is listed.
    async fn step(&mut self) -> Result<(), Gone> {
        self.look().await?;
        // Nothing is known yet of a server whose first answer was that it is busy.
        let Some(listed) = self.listed.choose(&mut self.random).cloned() else { return Ok(()) };
        let path = listed.path.as_str();
        if listed.has("list") {
            let answer = self.send(Method::GET, &format!("{path}?limit=1"), &Value::Null).await?;
            self.judge("list", path, &answer, &[200]).await?;
        }
        if listed.has("create") {
            // It lacks everything, and whoever knows the resource says so.
            let answer = self.send(Method::POST, &format!("{path}?dryRun=All"), &json!({})).await?;
            self.judge("create", path, &answer, &[200, 201, 400, 403, 409, 422]).await?;
        }
        self.make_one().await
    }

    /// An object that is made through a server is there for it, whoever made it.
    async fn make_one(&mut self) -> Result<(), Gone> {
        let known = KINDS.iter().filter(|(path, _)| self.listed.iter().any(|listed| listed.path == *path));
        let known: Vec<_> = known.copied().collect();
        let Some((collection, object)) = known.choose(&mut self.random).copied() else { return Ok(()) };
        // A server that is started again is asked by another client, and what the last one made may still be there.
        let name = format!("{}-{:016x}", self.id, rand::rng().random::<u64>());
        let mut object: Value = serde_json::from_str(object).expect("JSON");
        object["metadata"] = json!({"name": name});
        let answer = self.send(Method::POST, collection, &object).await?;
        self.judge("make", collection, &answer, &[201]).await?;
        if answer.status != 201 {
            return Ok(());
        }
        *self.made.entry(collection).or_default() += 1;
        let path = format!("{collection}/{name}");
        let labels = json!({"metadata": {"labels": {"changed-through": self.id}}});
        for (method, what, body) in [
            (Method::GET, "read", Value::Null),
            (Method::PATCH, "change", labels),
            (Method::DELETE, "delete", Value::Null),
        ] {
            let answer = self.send(method, &path, &body).await?;
            let is_missing = answer.status == 404 && answer.body.contains(&name);
            assert!(!is_missing, "{what} through {}: {}", self.id, answer.body);
            self.judge(what, &path, &answer, &[200]).await?;
        }
        Ok(())
    }
}

/// Clients of all servers.
#[derive(Default)]
pub(super) struct Traffic {
    tasks: JoinSet<(usize, Made)>,
    made: Made,
}

impl Traffic {
    /// Goes on through a server until that cannot be asked any more.
    pub(super) fn through(&mut self, member: &Member, id: &'static str) {
        let pki = member.data.path().join("pki");
        let target = Target::new(member.program.address, &pki.join("ca.crt"), Protocol::Http2)
            .with_identity(&pki.join("admin.crt"), &pki.join("admin.key"));
        let seed = self.tasks.len() as u64;
        self.tasks.spawn(async move {
            let Ok(client) = target.connect().await else { return (0, Made::new()) };
            let (random, tag) = (StdRng::seed_from_u64(seed), "none".to_owned());
            let mut wanderer =
                Wanderer { id, client, random, tag, listed: Vec::new(), done: 0, made: Made::new() };
            while wanderer.step().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            (wanderer.done, wanderer.made)
        });
    }

    /// Fails if something was wrong in what has ended.
    fn take(&mut self, ended: Result<(usize, Made), JoinError>) -> usize {
        let (done, made) = ended.expect("nothing was wrong");
        for (kind, count) in made {
            *self.made.entry(kind).or_default() += count;
        }
        done
    }

    /// Fails if something was wrong already.
    pub(super) fn check(&mut self) -> usize {
        let mut done = 0;
        while let Some(ended) = self.tasks.try_join_next() {
            done += self.take(ended);
        }
        done
    }

    /// Waits until no server can be asked any more, and says how much was asked.
    pub(super) async fn end(mut self) -> (usize, Made) {
        let mut done = 0;
        while let Some(ended) = self.tasks.join_next().await {
            done += self.take(ended);
        }
        (done, self.made)
    }
}
