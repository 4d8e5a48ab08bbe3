use super::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn chosen(accept: &str) -> String {
    match negotiate(accept, JSON_YAML_AND_PROTOBUF, meta_transforms) {
        Ok(Choice { media_type, pretty, stream, convert, .. }) => {
            let convert =
                convert.map(|c| format!(" {}/{} {}", c.group, c.version, c.kind)).unwrap_or_default();
            let flags = [(pretty, " pretty"), (stream, " stream")];
            let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
            format!("{}{convert}{flags}", media_type.subtype())
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn responses_take_the_form_upstream_would_choose() {
    let table = "as=Table;v=v1;g=meta.k8s.io";
    let refused = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    let cases = [
        (String::new(), "json"),
        ("*/*".into(), "json"),
        ("application/*".into(), "json"),
        ("application/yaml".into(), "yaml"),
        ("application/yaml;q=0.5,application/json".into(), "json"),
        (format!("{PROTOBUF},application/json"), "vnd.kubernetes.protobuf"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".into(), "json"),
        (format!("application/json;{table},application/json"), "json meta.k8s.io/v1 Table"),
        (
            format!(
                "application/json;{table},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
            ),
            "json meta.k8s.io/v1 Table",
        ),
        (format!("{PROTOBUF};{table},application/json"), "json"),
        (
            format!("{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
            "vnd.kubernetes.protobuf meta.k8s.io/v1 PartialObjectMetadataList",
        ),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/yaml".into(), "yaml"),
        ("application/json;as=Table".into(), refused),
        ("application/json;stream=watch;pretty=1".into(), "json pretty stream"),
        ("application/json;pretty=true;unknown=1".into(), "json"),
        ("application/json;stream=other".into(), refused),
        ("application/json;sv=v1".into(), refused),
        ("application/yaml;stream=watch".into(), refused),
        ("text/plain".into(), refused),
        ("nonsense".into(), refused),
        ("Application/JSON".into(), refused),
    ];
    for (accept, expected) in cases {
        assert_eq!(chosen(&accept), expected, "{accept}");
    }
}

#[test]
fn errors_are_never_transformed() {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert!(negotiate(accept, JSON_AND_YAML, no_transform).is_err());
    let fallback = format!("{accept},application/json");
    let choice = negotiate(&fallback, JSON_AND_YAML, no_transform).expect("the fallback");
    assert_eq!(choice, Choice::plain(MediaType::Json));
}

#[test]
fn an_endpoint_may_have_conversions_of_its_own() {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer";
    let allows = |_, convert: Option<&Convert>| convert.is_some_and(|c| c.group == "apidiscovery.k8s.io");
    let choice = negotiate(accept, JSON_AND_YAML, allows).expect("a choice");
    assert_eq!(choice.convert.expect("a type").kind, "APIGroupDiscoveryList");
    assert_eq!(choice.profile, "nopeer");
}

#[test]
fn watches_are_not_yaml() {
    let stream = |accept| negotiate_stream(accept, JSON_YAML_AND_PROTOBUF, meta_transforms);
    let json = stream("application/json;stream=watch").expect("a stream");
    assert_eq!(json.media_type, MediaType::Json);
    assert!(stream("*/*").is_ok());
    assert_eq!(
        stream("application/yaml").expect_err("no stream").to_string(),
        "only the following media types are accepted: application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch"
    );
}

#[test]
fn bodies_have_the_form_they_say() {
    let body = |content_type| negotiate_body(content_type, JSON_AND_YAML);
    assert_eq!(body(""), Ok(MediaType::Json));
    assert_eq!(body("application/yaml; charset=utf-8"), Ok(MediaType::Yaml));
    assert_eq!(body("Application/Json"), Ok(MediaType::Json));
    for wrong in ["text/plain", "application/*", "application/json; a", "*/*", PROTOBUF] {
        assert_eq!(
            body(wrong).expect_err(wrong).to_string(),
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml"
        );
    }
}

#[test]
fn patches_have_the_type_they_say() {
    let patch = |content_type| negotiate_patch(content_type, PatchType::CUSTOM);
    assert_eq!(patch("application/merge-patch+json; charset=utf-8"), Ok(PatchType::Merge));
    assert_eq!(patch("application/apply-patch+yaml"), Ok(PatchType::Apply));
    assert_eq!(
        patch("application/strategic-merge-patch+json").expect_err("not for custom resources").to_string(),
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    let built_in = negotiate_patch("application/strategic-merge-patch+json", PatchType::BUILT_IN);
    assert_eq!(built_in, Ok(PatchType::StrategicMerge));
}

#[test]
fn people_get_indented_output() {
    let cases = [
        (None, "curl/8.5.0", true),
        (None, "Wget/1.21", true),
        (None, "Mozilla/5.0 (X11)", true),
        (None, "kubectl/v1.36.4", false),
        (Some(""), "curl/8.5.0", true),
        (Some("0"), "curl/8.5.0", false),
        (Some("false"), "curl/8.5.0", false),
        (Some("yes"), "curl/8.5.0", false),
        (Some("1"), "kubectl/v1.36.4", true),
        (Some("true"), "", true),
    ];
    for (parameter, user_agent, expected) in cases {
        assert_eq!(wants_pretty(parameter, user_agent), expected, "{parameter:?} {user_agent}");
    }
}
