use super::*;

fn info(method: &str, uri: &str) -> RequestInfo {
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    RequestInfo::new(&method, &uri.parse().expect("a URI")).expect(uri)
}

/// `verb group/version namespace resource name subresource`, with `-` for what is empty.
fn summary(method: &str, uri: &str) -> String {
    let info = info(method, uri);
    if !info.is_resource_request {
        return info.verb.into_owned();
    }
    let version = format!("{}/{}", info.api_group, info.api_version);
    let words = [&*info.verb, &version, &info.namespace, &info.resource, &info.name, &info.subresource];
    words.map(|word| if word.is_empty() { "-" } else { word }).join(" ")
}

#[test]
fn resources_are_read_from_the_path() {
    for (method, uri, expected) in [
        ("GET", "/api/v1/namespaces", "list /v1 - namespaces - -"),
        ("GET", "/api/v1/namespaces/a", "get /v1 a namespaces a -"),
        ("PUT", "/api/v1/namespaces/a/status", "update /v1 a namespaces a status"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update /v1 a namespaces a finalize"),
        ("GET", "/api/v1/namespaces/a/pods", "list /v1 a pods - -"),
        ("GET", "/api/v1/namespaces/a/pods/", "list /v1 a pods - -"),
        ("HEAD", "/api/v1/namespaces/a/pods/b", "get /v1 a pods b -"),
        ("GET", "/api/v1/namespaces/a/pods/b?watch=true", "get /v1 a pods b -"),
        ("GET", "/api/v1/namespaces/a/pods/b/log", "get /v1 a pods b log"),
        ("POST", "/api/v1/namespaces/a/pods", "create /v1 a pods - -"),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", "create /v1 a pods b eviction"),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b", "patch apps/v1 a deployments b -"),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/b/scale", "update apps/v1 a deployments b scale"),
        ("DELETE", "/api/v1/nodes/n", "delete /v1 - nodes n -"),
        ("DELETE", "/api/v1/nodes", "deletecollection /v1 - nodes - -"),
        ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection /v1 a pods - -"),
        ("GET", "/api/v1/pods", "list /v1 - pods - -"),
        ("GET", "/api/v1/nodes/n/proxy/a/b", "get /v1 - nodes n proxy"),
        ("OPTIONS", "/api/v1/pods", "- /v1 - pods - -"),
        ("GET", "/apis/a.b/v1/namespaces/x/namespaces/y", "get a.b/v1 x namespaces y -"),
        ("GET", "/api/v1//pods", "get /v1 - - pods -"),
        ("GET", "/api/v1/namespaces/a%2Fpods/b", "get /v1 a pods b -"),
        ("GET", "/api/v1/nodes/%C3%A9%25", "get /v1 - nodes é% -"),
        ("GET", "/api/v1/nodes/%FF", "get /v1 - nodes \u{fffd} -"),
    ] {
        assert_eq!(summary(method, uri), expected, "{method} {uri}");
    }
}

#[test]
fn a_list_becomes_a_watch_when_asked() {
    for (query, verb) in [
        ("", "list"),
        ("watch", "watch"),
        ("watch=", "watch"),
        ("watch=true", "watch"),
        ("watch=1", "watch"),
        ("watch=no", "watch"),
        ("watch=0", "list"),
        ("watch=False", "list"),
        ("watch=0&watch=1", "list"),
        ("limit=x&watch=1", "watch"),
        ("labelSelector==&watch=false", "list"),
    ] {
        assert_eq!(info("GET", &format!("/api/v1/pods?{query}")).verb, verb, "{query}");
    }
}

#[test]
fn deprecated_verb_paths_are_understood() {
    for (method, uri, expected) in [
        ("GET", "/api/v1/watch/pods", "watch /v1 - pods - -"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch /v1 a pods b -"),
        ("POST", "/api/v1/watch/pods", "watch /v1 - pods - -"),
        ("GET", "/apis/apps/v1/watch/namespaces/a/deployments", "watch apps/v1 a deployments - -"),
        ("GET", "/api/v1/proxy/namespaces/a/pods/b/c/d", "proxy /v1 a pods b -"),
        ("GET", "/api/v1/proxy/nodes/n", "proxy /v1 - nodes n -"),
    ] {
        assert_eq!(summary(method, uri), expected, "{method} {uri}");
    }
    let error = RequestInfo::new(&Method::GET, &"/api/v1/watch?a=b".parse().expect("a URI"));
    let error = error.expect_err("nothing to watch").to_string();
    assert_eq!(error, "unable to determine kind and namespace from url, /api/v1/watch?a=b");
}

#[test]
fn other_paths_have_their_method_for_a_verb() {
    for (method, uri, verb) in [
        ("GET", "/", "get"),
        ("GET", "/api", "get"),
        ("GET", "/api/v1", "get"),
        ("GET", "/api/v1/", "get"),
        ("GET", "/apis/apps/v1", "get"),
        ("POST", "/apis/apps", "post"),
        ("HEAD", "/healthz", "head"),
        ("GET", "/other/v1/pods", "get"),
        ("PROPFIND", "/x", "propfind"),
    ] {
        let info = info(method, uri);
        assert_eq!((info.is_resource_request, &*info.verb), (false, verb), "{method} {uri}");
        assert_eq!(info.path, uri);
        assert!(info.resource.is_empty() && info.parts.is_empty());
    }
    let bad = RequestInfo::new(&Method::GET, &"/api/v1/pods/%4".parse().expect("a URI"));
    assert_eq!(bad, Err(RequestInfoError::BadEscape));
}

#[test]
fn parts_go_on_beyond_the_subresource() {
    let info = info("GET", "/api/v1/namespaces/a/services/b/proxy/c/d");
    assert_eq!(info.parts, ["services", "b", "proxy", "c", "d"]);
}

#[test]
fn a_selector_that_demands_a_name_gives_it() {
    for (query, name) in [
        ("fieldSelector=metadata.name%3Dx", "x"),
        ("fieldSelector=metadata.name=x,spec.y=z&watch=1", "x"),
        ("fieldSelector=metadata.name!=x", ""),
        ("fieldSelector=metadata.name=a%252Fb", ""),
        ("fieldSelector=metadata.name=x&limit=abc", ""),
        ("fieldSelector=metadata.name=x&timeoutSeconds=", ""),
        ("fieldSelector=metadata.name=x&labelSelector==", ""),
        ("fieldSelector=metadata.name=x,y", ""),
    ] {
        assert_eq!(info("GET", &format!("/api/v1/pods?{query}")).name, name, "{query}");
    }
    // Only reads are narrowed; a collection is deleted as a collection.
    let delete = info("DELETE", "/api/v1/pods?fieldSelector=metadata.name=x");
    assert_eq!((&*delete.verb, &*delete.name), ("deletecollection", ""));
}

#[test]
fn selectors_are_kept_where_they_count() {
    let query = "fieldSelector=a%3Db&labelSelector=c";
    for (method, path, kept) in [
        ("GET", "/api/v1/pods", true),
        ("DELETE", "/api/v1/pods", true),
        ("POST", "/api/v1/pods", false),
        ("GET", "/api/v1/watch/pods", false),
        ("GET", "/api/v1/nodes/n", false),
    ] {
        let info = info(method, &format!("{path}?{query}"));
        let expected = if kept { ("a=b", "c") } else { ("", "") };
        assert_eq!((&*info.field_selector, &*info.label_selector), expected, "{method} {path}");
    }
}

#[test]
fn long_running_requests_are_known() {
    for (uri, long_running) in [
        ("/api/v1/pods?watch=1", true),
        ("/api/v1/watch/pods", true),
        ("/api/v1/namespaces/a/pods/b/log", true),
        ("/api/v1/nodes/n/proxy", true),
        ("/api/v1/pods", false),
        ("/api/v1/namespaces/a/pods/b/status", false),
        ("/healthz/log", false),
    ] {
        assert_eq!(info("GET", uri).is_long_running(), long_running, "{uri}");
    }
}
