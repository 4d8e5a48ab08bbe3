use std::{cell::RefCell, collections::HashSet, sync::Arc, time::Duration};

use http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE};
use parking_lot::RwLock;
use prometheus::Registry;

use super::{
    registered,
    series::{AllSeries, Series, Values},
};
use crate::{RequestContext, RequestInfo};

/// Subresources that are connections to something else.
const CONNECT: [&str; 5] = ["log", "exec", "portforward", "attach", "proxy"];

/// Requests by what they ask for.
pub(crate) struct Requests {
    series: AllSeries,
    /// What was served so far, without verbs: what else ends before a handler is asked must not be named.
    known: RwLock<HashSet<String>>,
}

/// Who asks for what, as labels. Upstream's words, upper case.
pub(crate) struct RequestLabels {
    verb: &'static str,
    dry_run: &'static str,
    scope: &'static str,
    info: Arc<RequestInfo>,
}

/// How long a request took.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// From beginning to end.
    pub(crate) whole: Duration,
    /// For its turn, and for webhooks.
    pub(crate) waited: Duration,
}

impl RequestLabels {
    pub(crate) fn of(request: &impl RequestContext) -> Self {
        let info = request.info();
        let scope = scope(&info);
        let verb = verb(request.request_method(), request.request_headers(), &info, scope);
        Self { verb, dry_run: dry_run(request.request_uri().query().unwrap_or_default()), scope, info }
    }

    pub(crate) fn info(&self) -> &RequestInfo {
        &self.info
    }

    /// verb, group, version, resource, subresource, scope, component. What is no resource stands in the place
    /// of a subresource.
    pub(super) fn values(&self) -> [&str; 7] {
        let info = &self.info;
        let (group, version, resource) = (&*info.api_group, &*info.api_version, &*info.resource);
        if info.is_resource_request {
            [self.verb, group, version, resource, &info.subresource, self.scope, "apiserver"]
        } else {
            [self.verb, "", "", "", &info.path, self.scope, ""]
        }
    }

    /// These values as they are shown.
    fn shown<'a>(&'a self, values: [&'a str; 7]) -> Values<'a> {
        let [verb, group, version, resource, subresource, scope, component] = values;
        [component, self.dry_run, group, resource, scope, subresource, verb, version]
    }

    /// What is asked for, whatever is to be done with it.
    fn target(&self) -> String {
        self.values()[1..5].join("\0")
    }

    /// Only the sizes of what is read are of interest.
    fn is_read(&self) -> bool {
        matches!(self.verb, "GET" | "LIST")
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    match info {
        info if !info.name.is_empty() || info.verb == "create" => "resource",
        info if !info.namespace.is_empty() => "namespace",
        info if info.is_resource_request => "cluster",
        _ => "",
    }
}

fn verb(method: &Method, headers: &HeaderMap, info: &RequestInfo, scope: &str) -> &'static str {
    if info.is_resource_request && CONNECT.contains(&&*info.subresource) {
        return "CONNECT";
    }
    if info.verb == "watch" {
        return "WATCH";
    }
    match *method {
        Method::GET | Method::HEAD if matches!(scope, "namespace" | "cluster") => "LIST",
        Method::GET | Method::HEAD => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH
            if headers.get(CONTENT_TYPE).is_some_and(|value| value == "application/apply-patch+yaml") =>
        {
            "APPLY"
        }
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn dry_run(query: &str) -> &'static str {
    if !query.contains("dryRun") {
        return "";
    }
    let pairs = form_urlencoded::parse(query.as_bytes());
    let valid = pairs.filter(|(name, _)| name == "dryRun").map(|(_, value)| value == "All");
    match valid.reduce(|one, other| one && other) {
        None => "",
        Some(true) => "All",
        Some(false) => "invalid",
    }
}

impl Requests {
    pub(super) fn new(registry: &Registry) -> Self {
        Self { series: registered(registry, AllSeries::new()), known: RwLock::default() }
    }

    /// Counts an answered request.
    pub(crate) fn record(&self, labels: &RequestLabels, code: StatusCode, times: Times, size: Option<u64>) {
        let series = self.series(labels.shown(labels.values()), || {
            self.known.write().insert(labels.target());
        });
        series.answered(code);
        series.duration.observe(times.whole.as_secs_f64());
        // The others do not tell dry runs apart, so that only one of two series may count for them.
        if !labels.dry_run.is_empty() {
            return;
        }
        series.sli_duration.observe(times.whole.saturating_sub(times.waited).as_secs_f64());
        if let Some(size) = size.filter(|_| labels.is_read()) {
            series.sizes.observe(size as f64);
        }
    }

    /// Counts a request that was ended before a handler could say that it knows what is asked for.
    pub(crate) fn drop(&self, labels: &RequestLabels, code: StatusCode) {
        let [verb, group, version, resource, subresource, scope] = self.bounded(labels);
        let values = [verb, group, version, resource, subresource, scope, "apiserver"];
        self.series(labels.shown(values), || {}).answered(code);
    }

    /// The labels without the component. What nobody has served yet may be made up by a client, and is not named.
    pub(super) fn bounded<'a>(&self, labels: &'a RequestLabels) -> [&'a str; 6] {
        let [verb, group, version, resource, subresource, scope, _] = labels.values();
        match self.known.read().contains(&labels.target()) {
            true => [verb, group, version, resource, subresource, scope],
            false => [verb, "", "", "", "", scope],
        }
    }

    /// Where requests with these labels are counted; `is_first` is told if there were none before. No allocation otherwise.
    fn series(&self, values: Values<'_>, is_first: impl FnOnce()) -> Arc<Series> {
        thread_local! {
            static KEY: RefCell<String> = const { RefCell::new(String::new()) };
        }
        KEY.with_borrow_mut(|key| {
            AllSeries::key(&values, key);
            self.series.get(key).unwrap_or_else(|| {
                is_first();
                self.series.get_or_insert(key)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::{
        http::testing::{read, request},
        metrics::Metrics,
    };

    #[test]
    fn labels_are_upstreams() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/namespaces/a/pods/b", "GET||v1|pods||resource|apiserver"),
            ("HEAD", "/api/v1/namespaces/a/pods/b", "GET||v1|pods||resource|apiserver"),
            ("GET", "/api/v1/namespaces/a/pods", "LIST||v1|pods||namespace|apiserver"),
            ("GET", "/api/v1/pods", "LIST||v1|pods||cluster|apiserver"),
            ("GET", "/api/v1/pods?watch=1", "WATCH||v1|pods||cluster|apiserver"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b", "WATCH||v1|pods||resource|apiserver"),
            (
                "POST",
                "/apis/apps/v1/namespaces/a/deployments",
                "POST|apps|v1|deployments||resource|apiserver",
            ),
            (
                "PUT",
                "/apis/apps/v1/namespaces/a/deployments/b/status",
                "PUT|apps|v1|deployments|status|resource|apiserver",
            ),
            ("PATCH", "/api/v1/nodes/n", "PATCH||v1|nodes||resource|apiserver"),
            ("DELETE", "/api/v1/namespaces/a/pods", "DELETE||v1|pods||namespace|apiserver"),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "CONNECT||v1|pods|log|resource|apiserver"),
            ("GET", "/livez", "GET||||/livez||"),
            ("BREW", "/livez", "other||||/livez||"),
        ] {
            let labels = RequestLabels::of(&request(method, uri));
            assert_eq!(labels.values().join("|"), expected, "{method} {uri}");
        }
        let mut apply = request("PATCH", "/api/v1/nodes/n");
        apply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/apply-patch+yaml"));
        assert_eq!(RequestLabels::of(&apply).verb, "APPLY");
    }

    #[test]
    fn dry_runs_are_told_apart() {
        for (query, expected) in [
            ("", ""),
            ("dryRun=All", "All"),
            ("dryRun=All&dryRun=All", "All"),
            ("dryRun=Some", "invalid"),
            ("dryRun=All&dryRun=", "invalid"),
            ("x=dryRun", ""),
        ] {
            assert_eq!(dry_run(query), expected, "{query}");
        }
    }

    #[tokio::test]
    async fn requests_are_counted_by_their_labels() {
        let metrics = Metrics::new();
        let record = |method: &str, uri: &str, code: u16, millis, size| {
            let code = StatusCode::from_u16(code).expect("a code");
            let labels = RequestLabels::of(&request(method, uri));
            let times = Times { whole: Duration::from_millis(millis), waited: Duration::from_millis(1) };
            metrics.requests().record(&labels, code, times, size);
        };
        record("GET", "/api/v1/namespaces/a/pods/b", 200, 3, Some(1500));
        record("GET", "/api/v1/namespaces/a/pods/c", 200, 30, Some(150));
        record("GET", "/api/v1/namespaces/a/pods/d", 404, 1, Some(100));
        record("POST", "/api/v1/namespaces/a/pods?dryRun=All", 201, 1, Some(100));
        let text = read(metrics.scrape()).await.1;
        let pods = r#"component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1""#;
        let pods_sli = r#"component="apiserver",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1""#;
        for expected in [
            r#"apiserver_request_total{code="200","#.to_owned() + pods + "} 2\n",
            r#"apiserver_request_total{code="404","#.to_owned() + pods + "} 1\n",
            format!("apiserver_request_duration_seconds_bucket{{{pods},le=\"0.005\"}} 2\n"),
            format!("apiserver_request_duration_seconds_count{{{pods}}} 3\n"),
            format!("apiserver_request_sli_duration_seconds_bucket{{{pods_sli},le=\"0.05\"}} 3\n"),
            format!("apiserver_request_sli_duration_seconds_sum{{{pods_sli}}} 0.031\n"),
            format!("apiserver_response_sizes_bucket{{{pods_sli},le=\"1000\"}} 2\n"),
            r#"dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="POST""#
                .to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected} is missing in\n{text}");
        }
        assert!(!text.contains(r#"response_sizes_count{component="apiserver",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1"#));
    }
}
