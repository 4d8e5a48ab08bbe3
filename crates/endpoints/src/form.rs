//! The form of an answer.

use bytes::Bytes;
use concord_codec::{
    Choice, FieldValidation, JSON_AND_YAML, Limits, MediaType, NegotiationError, Offer, Options, decode,
    encode_yaml, meta_transforms, negotiate, no_transform,
};
use concord_meta::{Reason, Status, StatusDetails};
use concord_printers::MetaVersion;
use concord_server::{Accept, Response, with_body};
use http::StatusCode;
use serde_json::Value;

use crate::indent::indent;

/// What the answers of an endpoint can be, for the table of paths: upstream's router looks at the `Accept` header
/// before its handlers do.
fn available(offer: &Offer, watchable: bool) -> Vec<String> {
    let watches = offer.iter().filter(|media_type| watchable && **media_type != MediaType::Yaml);
    let watches = watches.map(|media_type| format!("{media_type};stream=watch"));
    offer.iter().map(ToString::to_string).chain(watches).collect()
}

/// In which form the client gets its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) media_type: MediaType,
    pub(crate) pretty: bool,
    pub(crate) transform: Transform,
}

/// What the client wants instead of the object itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    Nothing,
    Table(MetaVersion),
    Metadata(MetaVersion),
    MetadataList(MetaVersion),
}

impl Form {
    /// The form of an answer about resources.
    ///
    /// # Errors
    ///
    /// 406 when the client accepts nothing that there is.
    pub(crate) fn of(accept: &Accept, offer: &Offer) -> Result<Self, Status> {
        // What nearly every program sends.
        if matches!(accept.header(), "" | "*/*" | "application/json") {
            return Ok(Self::json(accept.pretty()));
        }
        let choice = negotiate(accept.header(), offer, meta_transforms).map_err(refused)?;
        Ok(Self::chosen(&choice, accept))
    }

    /// The form of an answer that has no other type than its own.
    ///
    /// # Errors
    ///
    /// As [`Form::of`].
    pub(crate) fn plain(accept: &Accept) -> Result<Self, Status> {
        let choice = negotiate(accept.header(), JSON_AND_YAML, no_transform).map_err(refused)?;
        Ok(Self::chosen(&choice, accept))
    }

    pub(crate) fn json(pretty: bool) -> Self {
        Self { media_type: MediaType::Json, pretty, transform: Transform::Nothing }
    }

    pub(crate) fn chosen(choice: &Choice, accept: &Accept) -> Self {
        let transform = choice.convert.as_ref().map_or(Transform::Nothing, |convert| {
            let version = MetaVersion::parse(&convert.version).unwrap_or_default();
            match convert.kind.as_str() {
                "Table" => Transform::Table(version),
                "PartialObjectMetadata" => Transform::Metadata(version),
                "PartialObjectMetadataList" => Transform::MetadataList(version),
                _ => Transform::Nothing,
            }
        });
        Self { media_type: choice.media_type, pretty: choice.pretty || accept.pretty(), transform }
    }

    /// Whether compact JSON goes out as it is.
    pub(crate) fn is_compact_json(&self) -> bool {
        self.media_type == MediaType::Json && !self.pretty
    }

    /// An answer whose body is this compact JSON, in the form the client wants.
    pub(crate) fn answer(&self, code: StatusCode, compact: Vec<u8>) -> Result<Response, Status> {
        let body = self.present(compact)?;
        Ok(with_body(code, self.media_type.as_str(), body))
    }

    /// Compact JSON in the form the client wants.
    pub(crate) fn present(&self, compact: Vec<u8>) -> Result<Bytes, Status> {
        match self.media_type {
            MediaType::Yaml => {
                let mut out = Vec::new();
                encode_yaml(&own_value(&compact)?, &mut out);
                Ok(out.into())
            }
            _ if self.pretty => Ok(indent(&compact).into()),
            _ => Ok(compact.into()),
        }
    }
}

/// Reads JSON that this server has written.
fn own_value(compact: &[u8]) -> Result<Value, Status> {
    // A list nests its objects a little deeper than they are.
    let limits = Limits { max_bytes: usize::MAX, max_depth: Limits::default().max_depth + 16 };
    let options = Options { limits, validation: FieldValidation::Ignore, ..Options::default() };
    let decoded = decode(compact, &options).map_err(Status::internal_error)?;
    Ok(Value::Object(decoded.object))
}

/// 406 or 415.
pub(crate) fn refused(error: NegotiationError) -> Status {
    fn texts(accepted: &[String]) -> Vec<&str> {
        accepted.iter().map(String::as_str).collect()
    }
    match error {
        NegotiationError::NotAcceptable { accepted } => Status::not_acceptable(&texts(&accepted)),
        NegotiationError::UnsupportedMediaType { accepted } => {
            Status::unsupported_media_type(&texts(&accepted))
        }
    }
}

/// What upstream's router makes of an `Accept` header: it compares names and knows no wildcard but the full one.
///
/// # Errors
///
/// 406, in the router's words.
pub(crate) fn check_accept(header: &str, offer: &Offer, watchable: bool) -> Result<(), Status> {
    let name = |clause: &str| clause.split(';').next().unwrap_or_default().trim().to_owned();
    let fits = |clause: &str| {
        let name = name(clause);
        name == "*/*" || offer.iter().any(|media_type| media_type.as_str() == name)
    };
    if header.is_empty() || header.split(',').any(fits) {
        return Ok(());
    }
    let available = available(offer, watchable).join(", ");
    let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
    Err(by_router(406, Reason::NOT_ACCEPTABLE, &message))
}

/// What upstream's router makes of the `Content-Type` of a patch.
///
/// # Errors
///
/// 415, in the router's words.
pub(crate) fn check_patch_type(content_type: &str, known: &[&str]) -> Result<(), Status> {
    let name = |clause: &str| clause.split(';').next().unwrap_or_default().trim().to_owned();
    if content_type.split(',').any(|clause| known.contains(&name(clause).as_str())) {
        return Ok(());
    }
    Err(by_router(415, Reason::UNSUPPORTED_MEDIA_TYPE, "415: Unsupported Media Type"))
}

fn by_router(code: u16, reason: Reason, message: &str) -> Status {
    Status { details: Some(Box::new(StatusDetails::default())), ..Status::failure(code, reason, message) }
}

#[cfg(test)]
mod tests {
    use concord_codec::JSON_YAML_AND_PROTOBUF;
    use concord_server::RequestContext;
    use http::Request;

    use super::*;

    fn accept(header: &str) -> Accept {
        let request = Request::builder().uri("/").header("accept", header).body(()).expect("a request");
        assert!(request.request_headers().contains_key("accept"));
        Accept::of(&request)
    }

    #[test]
    fn clients_get_what_they_accept() {
        let table = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let cases = [
            ("", Form::json(false)),
            ("*/*", Form::json(false)),
            ("application/json", Form::json(false)),
            ("application/json;pretty=1", Form::json(true)),
            ("application/vnd.kubernetes.protobuf,application/json", Form::json(false)),
            (table, Form { transform: Transform::Table(MetaVersion::V1Beta1), ..Form::json(false) }),
            ("application/yaml", Form { media_type: MediaType::Yaml, ..Form::json(false) }),
        ];
        for (header, expected) in cases {
            assert_eq!(Form::of(&accept(header), JSON_AND_YAML), Ok(expected), "{header}");
        }
        let protobuf = accept("application/vnd.kubernetes.protobuf,application/json");
        let form = Form::of(&protobuf, JSON_YAML_AND_PROTOBUF).expect("offered");
        assert_eq!(form.media_type, MediaType::Protobuf);
        let protobuf = accept("application/vnd.kubernetes.protobuf");
        let refused = Form::of(&protobuf, JSON_AND_YAML).expect_err("not offered");
        assert_eq!((refused.code, refused.reason), (406, Reason::NOT_ACCEPTABLE));
        assert!(Form::plain(&accept("application/json;as=Table;v=v1;g=meta.k8s.io")).is_err());
    }

    #[test]
    fn the_router_knows_names_only() {
        for header in ["", "*/*", "text/html, application/yaml;q=0.1", " application/json ;as=x"] {
            assert_eq!(check_accept(header, JSON_AND_YAML, false), Ok(()), "{header}");
        }
        for header in ["application/*", "text/html", "application/vnd.kubernetes.protobuf"] {
            let status = check_accept(header, JSON_AND_YAML, false).expect_err(header);
            let expected =
                "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml";
            assert_eq!(status.message, expected);
            assert!(
                check_accept(header, JSON_AND_YAML, true)
                    .expect_err(header)
                    .message
                    .ends_with("application/json;stream=watch")
            );
        }
        let status = check_accept("text/html", JSON_YAML_AND_PROTOBUF, true).expect_err("not offered");
        assert!(status.message.ends_with(
            "application/vnd.kubernetes.protobuf, application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch"
        ));
        assert_eq!(check_accept("application/vnd.kubernetes.protobuf", JSON_YAML_AND_PROTOBUF, true), Ok(()));
        let known = ["application/merge-patch+json"];
        assert_eq!(check_patch_type("application/merge-patch+json; charset=utf-8", &known), Ok(()));
        for wrong in ["", "application/json"] {
            let status = check_patch_type(wrong, &known).expect_err(wrong);
            assert_eq!((status.code, status.message.as_str()), (415, "415: Unsupported Media Type"));
        }
    }

    #[test]
    fn json_is_presented_in_every_form() {
        let compact = || b"{\"kind\":\"A\",\"a\":[]}\n".to_vec();
        let yaml = Form { media_type: MediaType::Yaml, ..Form::json(false) };
        for (form, expected) in [
            (Form::json(false), "{\"kind\":\"A\",\"a\":[]}\n"),
            (Form::json(true), "{\n  \"kind\": \"A\",\n  \"a\": []\n}"),
            (yaml, "a: []\nkind: A\n"),
        ] {
            assert_eq!(form.present(compact()).expect("own JSON"), expected);
        }
    }
}
