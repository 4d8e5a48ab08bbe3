//! The options of lists and watches.

use super::{ContinueToken, Query, refuse};
use crate::field::{BadValue, Error, Path};
use crate::{ResourceVersion, Status, fields, labels, parse_resource_version};

/// What a list or watch asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// Which objects, by labels.
    pub label_selector: labels::Selector,
    /// Which objects, by fields. Whether the resource knows the fields is not checked yet.
    pub field_selector: fields::Selector,
    /// Whether changes are asked for rather than the present state.
    pub watch: bool,
    /// Whether the watch may be told of revisions at which nothing changed.
    pub allow_watch_bookmarks: bool,
    /// The version of the state, as the client wrote it.
    pub resource_version: String,
    /// How that version is meant.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// How long a watch lasts.
    pub timeout_seconds: Option<i64>,
    /// How many objects a page has; none or a negative number is no limit.
    pub limit: i64,
    /// Where the last page ended.
    pub continue_token: String,
    /// Whether a watch begins with the present state.
    pub send_initial_events: Option<bool>,
}

/// How the resource version of a list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// The state at that version.
    Exact,
    /// The state at that version or any later one.
    NotOlderThan,
}

/// The state a list is to be read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAt {
    /// The newest state there is.
    MostRecent,
    /// Any state at hand; a limit does not count.
    Any,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exact(u64),
    /// Where the continue token says.
    Continue,
}

impl ListOptions {
    /// Reads and checks the parameters of a list or watch.
    ///
    /// As upstream since watches can begin with a list, a watch without a version (or with `0`) is
    /// given `sendInitialEvents`. For the deprecated `watch/` paths upstream checks the parameters as
    /// a list's; the caller sets `watch` afterwards.
    ///
    /// # Errors
    ///
    /// 400 for what cannot be read, 422 for what does not go together.
    pub fn from_query<S: AsRef<str>>(query: Query<'_, S>) -> Result<Self, Status> {
        let timeout_seconds = query.number("timeoutSeconds")?;
        let limit = query.number("limit")?.unwrap_or_default();
        let bad_selector = |error: labels::SelectorError| Status::bad_request(error.0);
        let mut options = Self {
            label_selector: labels::Selector::parse(query.text("labelSelector")).map_err(bad_selector)?,
            field_selector: fields::Selector::parse(query.text("fieldSelector")).map_err(bad_selector)?,
            watch: query.flag("watch").unwrap_or_default(),
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or_default(),
            resource_version: query.text("resourceVersion").to_owned(),
            resource_version_match: None,
            timeout_seconds,
            limit,
            continue_token: query.text("continue").to_owned(),
            send_initial_events: query.flag("sendInitialEvents"),
        };
        let mut matching = query.text("resourceVersionMatch");
        let unversioned = ["", "0"].contains(&options.resource_version.as_str());
        if options.watch && unversioned && matching.is_empty() && options.send_initial_events.is_none() {
            options.send_initial_events = Some(true);
            matching = "NotOlderThan";
        }
        let errors = if options.watch { options.check_watch(matching) } else { options.check_list(matching) };
        refuse("ListOptions", &errors)?;
        options.resource_version_match = match matching {
            "Exact" => Some(ResourceVersionMatch::Exact),
            "NotOlderThan" => Some(ResourceVersionMatch::NotOlderThan),
            _ => None,
        };
        Ok(options)
    }

    fn check_list(&self, matching: &str) -> Vec<Error> {
        let path = Path::new("resourceVersionMatch");
        let mut errors = Vec::new();
        let mut forbid = |detail: &'static str| errors.push(Error::forbidden(&path, detail));
        if !matching.is_empty() {
            if self.resource_version.is_empty() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if !["Exact", "NotOlderThan"].contains(&matching) {
                let supported = ["Exact", "NotOlderThan", ""];
                errors.push(Error::not_supported(&path, BadValue::named(matching), &supported));
            }
            if matching == "Exact" && self.resource_version == "0" {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(Error::forbidden(&path, detail));
            }
        }
        if self.send_initial_events.is_some() {
            let path = Path::new("sendInitialEvents");
            errors.push(Error::forbidden(&path, "sendInitialEvents is forbidden for list"));
        }
        errors
    }

    fn check_watch(&self, matching: &str) -> Vec<Error> {
        let path = Path::new("resourceVersionMatch");
        let mut errors = Vec::new();
        let mut forbid = |detail: &'static str| errors.push(Error::forbidden(&path, detail));
        if self.send_initial_events.is_some() && matching != "NotOlderThan" {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !matching.is_empty() {
            if self.send_initial_events.is_none() {
                forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
            }
            if matching != "NotOlderThan" {
                errors.push(Error::not_supported(&path, BadValue::named(matching), &["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(Error::forbidden(&path, detail));
            }
        }
        errors
    }

    /// The state a list is to be read from.
    ///
    /// # Errors
    ///
    /// 400 when the version is no number, or is given together with a continue token.
    pub fn read_at(&self) -> Result<ReadAt, Status> {
        if !self.continue_token.is_empty() {
            let versioned = !["", "0"].contains(&self.resource_version.as_str());
            if !versioned {
                return Ok(ReadAt::Continue);
            }
            // A token that is none is told of first.
            ContinueToken::decode(&self.continue_token)?;
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let version = parse_resource_version(&self.resource_version)
            .map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))?;
        Ok(match (version, self.resource_version_match) {
            (ResourceVersion::Unset, _) => ReadAt::MostRecent,
            (ResourceVersion::Any, _) => ReadAt::Any,
            (ResourceVersion::At(revision), Some(ResourceVersionMatch::Exact)) => ReadAt::Exact(revision),
            // Before resourceVersionMatch was there, a limit meant exactly this version.
            (ResourceVersion::At(revision), None) if self.limit > 0 => ReadAt::Exact(revision),
            (ResourceVersion::At(revision), _) => ReadAt::NotOlderThan(revision),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    fn parse(query: &str) -> Result<ListOptions, Status> {
        let pairs: Vec<_> =
            query.split_terminator('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        ListOptions::from_query(Query(&pairs))
    }

    #[test]
    fn parameters_are_read() {
        let options = parse(
            "labelSelector=a in (x)&fieldSelector=metadata.name=b&watch=1&allowWatchBookmarks=true\
             &resourceVersion=7&timeoutSeconds=30&limit=5&limit=6&other=x&sendInitialEvents=False\
             &resourceVersionMatch=NotOlderThan",
        )
        .expect("good");
        assert_eq!(options.label_selector.to_string(), "a in (x)");
        assert_eq!(options.field_selector.to_string(), "metadata.name=b");
        assert!(options.watch && options.allow_watch_bookmarks);
        assert_eq!((options.timeout_seconds, options.limit), (Some(30), 5));
        assert_eq!((options.resource_version.as_str(), options.send_initial_events), ("7", Some(false)));
        assert_eq!(options.resource_version_match, Some(ResourceVersionMatch::NotOlderThan));
        for (query, watch) in
            [("", false), ("watch", true), ("watch=FALSE", false), ("watch=0", false), ("watch=no", true)]
        {
            assert_eq!(parse(query).expect(query).watch, watch, "{query}");
        }
    }

    #[test]
    fn a_watch_without_a_version_begins_with_the_present_state() {
        for query in ["watch=1", "watch=1&resourceVersion=0"] {
            let options = parse(query).expect(query);
            assert_eq!(options.send_initial_events, Some(true), "{query}");
            assert_eq!(options.resource_version_match, Some(ResourceVersionMatch::NotOlderThan));
        }
        assert_eq!(parse("watch=1&resourceVersion=7").expect("good").send_initial_events, None);
        assert_eq!(parse("").expect("good").send_initial_events, None);
    }

    #[test]
    fn what_cannot_be_read_is_a_bad_request() {
        let table = [
            ("limit=abc", r#"strconv.ParseInt: parsing "abc": invalid syntax"#),
            ("limit=", r#"strconv.ParseInt: parsing "": invalid syntax"#),
            (
                "timeoutSeconds=99999999999999999999",
                r#"strconv.ParseInt: parsing "99999999999999999999": value out of range"#,
            ),
            ("labelSelector==", "found '=', expected: !, identifier, or 'end of string'"),
            ("fieldSelector=x", "invalid selector: 'x'; can't understand 'x'"),
        ];
        for (query, message) in table {
            let status = parse(query).expect_err(query);
            assert_eq!(
                (status.code, status.reason, status.message.as_str()),
                (400, Reason::BAD_REQUEST, message)
            );
        }
    }

    #[test]
    fn what_does_not_go_together_is_invalid() {
        let table = [
            (
                "resourceVersionMatch=Exact",
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "resourceVersionMatch=Exact&resourceVersion=0",
                r#"resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#,
            ),
            (
                "resourceVersionMatch=Exact&resourceVersion=1&continue=x",
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
            ),
            (
                "resourceVersionMatch=Best&resourceVersion=1",
                r#"resourceVersionMatch: Unsupported value: "Best": supported values: "Exact", "NotOlderThan", """#,
            ),
            (
                "sendInitialEvents=true",
                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            ),
            (
                "watch=1&sendInitialEvents=true",
                "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
            (
                "watch=1&resourceVersionMatch=NotOlderThan",
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
            (
                "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
                r#"[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]"#,
            ),
        ];
        for (query, errors) in table {
            let status = parse(query).expect_err(query);
            assert_eq!(status.message, format!(r#"ListOptions.meta.k8s.io "" is invalid: {errors}"#));
            assert_eq!((status.code, status.reason), (422, Reason::INVALID));
        }
    }

    #[test]
    fn the_state_to_read_follows_upstreams_matrix() {
        let table = [
            ("", ReadAt::MostRecent),
            ("limit=5", ReadAt::MostRecent),
            ("resourceVersion=0", ReadAt::Any),
            ("resourceVersion=0&limit=5", ReadAt::Any),
            ("resourceVersion=0&resourceVersionMatch=NotOlderThan", ReadAt::Any),
            ("resourceVersion=7", ReadAt::NotOlderThan(7)),
            ("resourceVersion=7&limit=-1", ReadAt::NotOlderThan(7)),
            ("resourceVersion=7&limit=5", ReadAt::Exact(7)),
            ("resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan", ReadAt::NotOlderThan(7)),
            ("resourceVersion=7&resourceVersionMatch=Exact", ReadAt::Exact(7)),
            ("continue=x", ReadAt::Continue),
            ("continue=x&resourceVersion=0", ReadAt::Continue),
        ];
        for (query, state) in table {
            assert_eq!(parse(query).expect(query).read_at(), Ok(state), "{query}");
        }
        let error = |query: &str| parse(query).expect("readable").read_at().expect_err(query).message;
        assert_eq!(
            error("resourceVersion=abc"),
            r#"invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#
        );
        let together = "specifying resource version is not allowed when using continue";
        let token = ContinueToken { revision: Some(7), start: "a".to_owned() }.encode();
        assert_eq!(error(&format!("resourceVersion=7&continue={token}")), together);
        assert!(error("resourceVersion=7&continue=x").starts_with("invalid continue token: "));
    }
}
