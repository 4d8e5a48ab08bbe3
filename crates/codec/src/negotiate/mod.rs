//! Which form a response takes, and which one a body has.

mod accept;
mod content_type;
mod patch;

use std::fmt;

pub use self::patch::{PatchType, negotiate_patch};

/// A form objects are sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

impl MediaType {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn subtype(self) -> &'static str {
        self.as_str().trim_start_matches("application/")
    }

    /// Whether a stream of events can have this form.
    fn streams(self) -> bool {
        self != Self::Yaml
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an endpoint can send, the preferred one first.
pub type Offer = [MediaType];

/// What custom resources offer.
pub const JSON_AND_YAML: &Offer = &[MediaType::Json, MediaType::Yaml];

/// What built-in resources offer.
pub const JSON_YAML_AND_PROTOBUF: &Offer = &[MediaType::Json, MediaType::Yaml, MediaType::Protobuf];

/// Another type the client wants the answer in: `as`, `g` and `v` of an `Accept` clause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Convert {
    /// `as`
    pub kind: String,
    /// `g`
    pub group: String,
    /// `v`
    pub version: String,
}

/// What the client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The form.
    pub media_type: MediaType,
    /// Whether the clause asked for indented output; see also [`wants_pretty`].
    pub pretty: bool,
    /// Whether the clause asked for a stream of events.
    pub stream: bool,
    /// The type wanted instead of the object's own.
    pub convert: Option<Convert>,
    /// The discovery profile, such as `nopeer`; empty if none.
    pub profile: String,
}

impl Choice {
    fn plain(media_type: MediaType) -> Self {
        Self { media_type, pretty: false, stream: false, convert: None, profile: String::new() }
    }
}

/// Why there is no choice. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    /// 406: nothing the client accepts can be sent.
    #[error("only the following media types are accepted: {}", .accepted.join(", "))]
    NotAcceptable {
        /// What can be.
        accepted: Vec<String>,
    },
    /// 415: the body's form cannot be read.
    #[error(
        "the body of the request was in an unknown format - accepted media types include: {}",
        .accepted.join(", ")
    )]
    UnsupportedMediaType {
        /// What can be.
        accepted: Vec<String>,
    },
}

/// Lets no type but the object's own through: for errors and endpoints without conversions.
pub fn no_transform(_: MediaType, convert: Option<&Convert>) -> bool {
    convert.is_none()
}

/// Lets tables and partial metadata of `meta.k8s.io` through, as resources do. Whether the object or the
/// list form fits the endpoint is for the caller to say.
pub fn meta_transforms(media_type: MediaType, convert: Option<&Convert>) -> bool {
    let Some(Convert { kind, group, version }) = convert else { return true };
    let known = group == "meta.k8s.io" && matches!(version.as_str(), "v1" | "v1beta1");
    match kind.as_str() {
        "Table" => known && media_type != MediaType::Protobuf,
        "PartialObjectMetadata" | "PartialObjectMetadataList" => known,
        _ => false,
    }
}

/// Chooses from an `Accept` header, empty if there was none. `allows` says which types an answer can
/// take in which form; a clause that wants another is passed over.
///
/// # Errors
///
/// [`NegotiationError::NotAcceptable`] when no clause fits.
pub fn negotiate(
    accept: &str,
    offer: &Offer,
    allows: impl Fn(MediaType, Option<&Convert>) -> bool,
) -> Result<Choice, NegotiationError> {
    let not_acceptable = || NegotiationError::NotAcceptable { accepted: names(offer) };
    if accept.is_empty() {
        return offer.first().copied().map(Choice::plain).ok_or_else(not_acceptable);
    }
    let clauses = accept::parse(accept);
    let fitting = clauses.iter().flat_map(|clause| {
        let matching = offer.iter().filter(move |media_type| matches(clause, **media_type));
        matching.map(move |media_type| (clause, *media_type))
    });
    let mut choices = fitting.filter_map(|(clause, media_type)| choice(clause, media_type));
    choices.find(|choice| allows(choice.media_type, choice.convert.as_ref())).ok_or_else(not_acceptable)
}

/// [`negotiate`] for a watch, which cannot be YAML.
///
/// # Errors
///
/// [`NegotiationError::NotAcceptable`] when no clause fits or the first fitting one cannot be streamed.
pub fn negotiate_stream(
    accept: &str,
    offer: &Offer,
    allows: impl Fn(MediaType, Option<&Convert>) -> bool,
) -> Result<Choice, NegotiationError> {
    let streams = offer.iter().filter(|media_type| media_type.streams());
    let accepted = streams.map(|media_type| format!("{media_type};stream=watch")).collect();
    let choice = negotiate(accept, offer, allows).ok().filter(|choice| choice.media_type.streams());
    choice.ok_or(NegotiationError::NotAcceptable { accepted })
}

/// What form a body has by its `Content-Type`, empty if there was none.
///
/// # Errors
///
/// [`NegotiationError::UnsupportedMediaType`] when it is malformed or not on offer.
pub fn negotiate_body(content_type: &str, offer: &Offer) -> Result<MediaType, NegotiationError> {
    let unsupported = || NegotiationError::UnsupportedMediaType { accepted: names(offer) };
    if content_type.is_empty() {
        return offer.first().copied().ok_or_else(unsupported);
    }
    let name = content_type::media_type(content_type).ok_or_else(unsupported)?;
    offer.iter().copied().find(|media_type| media_type.as_str() == name).ok_or_else(unsupported)
}

/// Whether output is indented although the `Accept` header does not ask for it: by the `pretty` query
/// parameter, else for browsers and the usual command line tools.
pub fn wants_pretty(parameter: Option<&str>, user_agent: &str) -> bool {
    match parameter {
        None | Some("") => ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| user_agent.starts_with(tool)),
        Some(pretty) => matches!(pretty, "1" | "t" | "T" | "true" | "True" | "TRUE"),
    }
}

fn names(offer: &Offer) -> Vec<String> {
    offer.iter().map(ToString::to_string).collect()
}

fn matches(clause: &accept::Clause<'_>, media_type: MediaType) -> bool {
    match (clause.kind, clause.subtype) {
        ("*" | "application", "*") => true,
        (kind, subtype) => kind == "application" && subtype == media_type.subtype(),
    }
}

/// What a clause asks for, or nothing when it asks for what no endpoint has.
fn choice(clause: &accept::Clause<'_>, media_type: MediaType) -> Option<Choice> {
    let mut choice = Choice::plain(media_type);
    for (name, value) in &clause.parameters {
        match *name {
            "as" => (*value).clone_into(&mut choice.convert.get_or_insert_default().kind),
            "g" => (*value).clone_into(&mut choice.convert.get_or_insert_default().group),
            "v" => (*value).clone_into(&mut choice.convert.get_or_insert_default().version),
            "stream" if *value == "watch" && media_type.streams() => choice.stream = true,
            // Neither other streams nor a server version exist.
            "stream" | "sv" => return None,
            "pretty" => choice.pretty = *value == "1",
            "profile" => (*value).clone_into(&mut choice.profile),
            _ => {}
        }
    }
    Some(choice)
}

#[cfg(test)]
mod tests;
