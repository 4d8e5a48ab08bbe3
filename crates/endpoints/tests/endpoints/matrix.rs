//! Every combination of what a list may say about the state it is to be of.

use serde_json::Value;

use crate::support::{Answer, Server, WIDGETS};

const UNPROVIDED: &str = "resourceVersionMatch is forbidden unless resourceVersion is provided";
const CONTINUED: &str = "resourceVersionMatch is forbidden when continue is provided";
const UNSUPPORTED: &str = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
const EXACTLY_ANY: &str = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
const TWO_VERSIONS: &str = "specifying resource version is not allowed when using continue";

/// What there was when, and what asks for it.
struct History {
    /// When there were `a` and `b`.
    early: String,
    /// When there was `c`, too, and a page ended after `a`.
    page: String,
    token: String,
    /// When there was `d`, too.
    now: String,
}

/// What is to be in the list, and of which state it is.
struct Expected<'a> {
    names: &'a [&'a str],
    version: &'a str,
    /// Whether the limit counts.
    limited: bool,
}

impl History {
    async fn make(server: &Server) -> Self {
        let version =
            |list: &Value| list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        server.create("a", "x").await;
        server.create("b", "x").await;
        let early = version(&server.get(WIDGETS).await.json());
        server.create("c", "x").await;
        let page = server.get(&format!("{WIDGETS}?limit=1")).await.json();
        let token = page["metadata"]["continue"].as_str().expect("a token").to_owned();
        server.create("d", "x").await;
        let now = version(&server.get(WIDGETS).await.json());
        Self { early, page: version(&page), token, now }
    }

    /// What the reference's table says: a list, or a refusal with these words in this order.
    fn expected(
        &self,
        version: &str,
        matching: &str,
        limit: &str,
        goes_on: bool,
    ) -> Result<Expected<'_>, (u16, Vec<&'static str>)> {
        let mut words = Vec::new();
        if !matching.is_empty() {
            words.extend(version.is_empty().then_some(UNPROVIDED));
            words.extend(goes_on.then_some(CONTINUED));
            words.extend((matching == "Newest").then_some(UNSUPPORTED));
            words.extend((matching == "Exact" && version == "0").then_some(EXACTLY_ANY));
        }
        if !words.is_empty() {
            return Err((422, words));
        }
        let all: &[&str] = &["a", "b", "c", "d"];
        let most_recent = Expected { names: all, version: &self.now, limited: true };
        match (version, matching) {
            // `0` takes the limit away, also from what goes on.
            ("" | "0", _) if goes_on => {
                Ok(Expected { names: &all[1..3], version: &self.page, limited: version.is_empty() })
            }
            (_, _) if goes_on => Err((400, vec![TWO_VERSIONS])),
            ("0", _) => Ok(Expected { limited: false, ..most_recent }),
            ("", _) | (_, "NotOlderThan") => Ok(most_recent),
            (_, "Exact") => Ok(Expected { names: &all[..2], version: &self.early, limited: true }),
            // What clients meant that were written before there was a choice.
            (_, _) if ["1", "500"].contains(&limit) => {
                Ok(Expected { names: &all[..2], version: &self.early, limited: true })
            }
            (_, _) => Ok(most_recent),
        }
    }
}

fn check(query: &str, answer: &Answer, limit: &str, expected: Result<Expected<'_>, (u16, Vec<&str>)>) {
    let expected = match expected {
        Ok(expected) => expected,
        Err((code, words)) => {
            let message = answer.message();
            let found: Vec<Option<usize>> = words.iter().map(|words| message.find(words)).collect();
            assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{query}: {message}");
            assert_eq!(answer.code, code, "{query}");
            let causes = answer.json()["details"]["causes"].as_array().map_or(0, Vec::len);
            assert_eq!(causes, if code == 422 { words.len() } else { 0 }, "{query}");
            return;
        }
    };
    let list = answer.json();
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{query}: {list}"));
    let names: Vec<&str> = items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
    let shown = if expected.limited && limit == "1" { 1 } else { expected.names.len() };
    assert_eq!(names, expected.names[..shown], "{query}");
    let metadata = &list["metadata"];
    assert_eq!(metadata["resourceVersion"], expected.version, "{query}");
    let left = expected.names.len() - shown;
    assert_eq!(metadata["continue"].is_string(), left > 0, "{query}");
    assert_eq!(metadata["remainingItemCount"].as_u64().unwrap_or_default(), left as u64, "{query}");
}

#[tokio::test]
async fn every_version_match_limit_and_continuation_gives_its_state() {
    let server = Server::new().await;
    let history = History::make(&server).await;
    for version in ["", "0", history.early.as_str()] {
        for matching in ["", "Exact", "NotOlderThan", "Newest"] {
            for limit in ["", "0", "1", "500", "-1"] {
                for token in ["", history.token.as_str()] {
                    let said = [
                        ("resourceVersion", version),
                        ("resourceVersionMatch", matching),
                        ("limit", limit),
                        ("continue", token),
                    ];
                    let said = said.iter().filter(|(_, value)| !value.is_empty());
                    let query =
                        said.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
                    let answer = server.get(&format!("{WIDGETS}?{query}")).await;
                    let expected = history.expected(version, matching, limit, !token.is_empty());
                    check(&query, &answer, limit, expected);
                }
            }
        }
    }
}
