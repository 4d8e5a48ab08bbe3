//! Bodies to objects.

use concord_codec::{
    DecodeError, Decoded, FieldValidation, ListOrder, MediaType, Options, TypeMeta, Violation, bad_object,
    decode, decode_yaml, missing_kind, strict_decoding_error, summarize, type_meta,
};
use concord_meta::{GroupKind, GroupVersion, GroupVersionKind, REDACTED, Status};
use concord_protobuf::Unknown;
use concord_structural::validate_type;
use serde_json::Value;

use crate::{Context, Form, Object, Resource, SubresourceKind, form::Source, metadata};

/// A body that is to become an object.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    /// What was sent.
    pub bytes: &'a [u8],
    /// In which form.
    pub media_type: MediaType,
    /// What is done about unknown and duplicate fields.
    pub validation: FieldValidation,
}

impl Resource {
    /// The object in a body: of the kind of this resource, with nothing in it that the kind does not have, in the form
    /// in which it would be encoded, and with defaults.
    ///
    /// # Errors
    ///
    /// 400 when it is none, 413 when it is too long.
    pub fn decode(&self, body: Body<'_>, context: &Context) -> Result<Object, Status> {
        let Some(form) = self.form() else {
            return Err(Status::internal_error(format!("no schema for {}", self.kind())));
        };
        let mut object = self.decode_as(&form, &self.kind(), body, context)?;
        let kind = self.kind();
        self.apply_defaults(&mut object).map_err(|why| Status::unfit(&kind, &kind.kind, why))?;
        Ok(object)
    }

    /// Fills in what clients may leave out.
    ///
    /// # Errors
    ///
    /// What cannot be read, in Go's words.
    pub(crate) fn apply_defaults(&self, object: &mut Object) -> Result<(), String> {
        let Some(storage) = self.storage() else { return Ok(()) };
        match storage.strategy.unreadable(object) {
            Some(why) => Err(why),
            None => {
                storage.strategy.default(&self.version.to_string(), object);
                Ok(())
            }
        }
    }

    /// Gives an object that admission changed the form of this version again: without what its kind does not have, and
    /// with defaults. For a subresource it is an object of the kind that this one takes. Says what was dropped.
    ///
    /// # Errors
    ///
    /// What does not fit, in Go's words.
    pub fn reform(&self, subresource: &str, object: &mut Object) -> Result<Vec<Violation>, String> {
        let form = self.form_of(subresource);
        let subresource = self.subresource(subresource);
        let kind = subresource.map_or_else(|| self.kind(), |subresource| subresource.kind.clone());
        let dropped = match form {
            Some(form) => form.normalize(object, Source::Body)?,
            None => Vec::new(),
        };
        object.insert("kind".to_owned(), Value::from(kind.kind.as_str()));
        object.insert("apiVersion".to_owned(), Value::from(kind.group_version().to_string()));
        if kind == self.kind() {
            self.apply_defaults(object)?;
        }
        Ok(dropped)
    }

    /// What is known of the objects that a subresource takes; of the resource itself, if that is empty.
    pub(super) fn form_of(&self, subresource: &str) -> Option<Form> {
        match self.subresource(subresource).map(|subresource| &subresource.behaviour) {
            Some(SubresourceKind::Scale(scaling)) => Some(scaling.schema.clone().into()),
            Some(SubresourceKind::Virtual(of)) => Some(of.schema().into()),
            Some(SubresourceKind::Unreachable(_)) => None,
            None | Some(SubresourceKind::Part) => self.form(),
        }
    }

    /// Custom resources must say what they are.
    fn demand_type_meta(&self, seen: &TypeMeta, object: &Object, bytes: &[u8]) -> Result<(), Status> {
        if self.order != ListOrder::Sorted {
            return Ok(());
        }
        let kind = self.kind().kind;
        if seen.kind.is_empty() {
            let (why, summary) = (missing_kind(bytes), self.summary(bytes));
            let text =
                format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})");
            return Err(Status::bad_request(text));
        }
        let given = GroupVersion::new(seen.group.as_str(), seen.version.as_str());
        if given != self.version {
            let wanted = &self.version;
            let text = format!(
                "the API version in the data ({given}) does not match the expected API version ({wanted})"
            );
            return Err(Status::bad_request(text));
        }
        self.check_custom_type(seen, object)
    }

    /// That a custom object is of another type is found by those who validate it, before anything else.
    pub(super) fn check_custom_type(&self, seen: &TypeMeta, object: &Object) -> Result<(), Status> {
        let errors = validate_type(object, &self.kind().kind, &self.version.to_string());
        let kind = GroupKind::new(seen.group.as_str(), seen.kind.as_str());
        match errors[..] {
            [] => Ok(()),
            _ => Err(Status::invalid(&kind, metadata(object).name(), &errors)),
        }
    }

    /// The object in a body that is to be of this kind, which one of the subresources takes. Without defaults, and
    /// without a check of its metadata.
    ///
    /// # Errors
    ///
    /// 400 when it is none, 413 when it is too long.
    pub fn decode_as(
        &self,
        form: &Form,
        kind: &GroupVersionKind,
        body: Body<'_>,
        context: &Context,
    ) -> Result<Object, Status> {
        if body.media_type == MediaType::Protobuf {
            let mut object = self.decode_protobuf(kind, body.bytes)?;
            finish(&mut object, form, kind)?;
            return Ok(object);
        }
        let options = Options { validation: body.validation, fields: form.fields(), ..Options::default() };
        let undecodable = |error: DecodeError| undecodable(&error, kind, &self.summary(body.bytes));
        let mut decoded = read(body, &options).map_err(undecodable)?;
        let seen = type_meta(&decoded.object).map_err(undecodable)?;
        if *kind == self.kind() {
            self.demand_type_meta(&seen, &decoded.object, body.bytes)?;
        }
        self.check_kind(&seen, kind)?;
        decoded.violations.extend(finish(&mut decoded.object, form, kind)?);
        report(&decoded.violations, body.validation, kind, context)?;
        Ok(decoded.object)
    }

    /// Refuses an object of another kind. What the object does not say is taken from the endpoint.
    fn check_kind(&self, seen: &TypeMeta, kind: &GroupVersionKind) -> Result<(), Status> {
        self.other_kind(seen, kind).map_err(|(body, why)| Status::unfit(&body, &kind.kind, why))
    }

    /// What an object is, and why that is not the kind it has to be.
    pub(super) fn other_kind(
        &self,
        seen: &TypeMeta,
        kind: &GroupVersionKind,
    ) -> Result<(), (GroupVersionKind, String)> {
        // What has a form in protobuf is a kind, and has lists.
        let exists = |of: &GroupVersionKind| {
            let item = of.kind.strip_suffix("List").unwrap_or(&of.kind);
            let item = GroupVersionKind::new(&*of.group, &*of.version, item);
            COMMON.contains(&&*of.kind) || self.protobuf.is_none_or(|protobuf| protobuf(&item).is_some())
        };
        other_kind(seen, kind, exists)
    }

    /// What a refusal shows of a body.
    fn summary(&self, body: &[u8]) -> String {
        match self.is_confidential() {
            true => REDACTED.to_owned(),
            false => summarize(body),
        }
    }

    /// What the client sent of an object in protobuf, which has no duplicate fields and none that it could not have.
    ///
    /// # Errors
    ///
    /// 400 when it is none.
    fn decode_protobuf(&self, kind: &GroupVersionKind, body: &[u8]) -> Result<Object, Status> {
        let unknown = Unknown::read(body).map_err(|error| {
            let (kind, summary) = (&kind.kind, self.summary(body));
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {error} ({summary})"
            ))
        })?;
        let said = [("kind", unknown.kind), ("apiVersion", unknown.api_version)];
        let said = said.map(|(name, value)| (name.to_owned(), Value::from(value)));
        let seen = type_meta(&Object::from_iter(said))
            .map_err(|error| undecodable(&error, kind, &self.summary(body)))?;
        self.check_kind(&seen, kind)?;
        self.codec(kind)?.decode(unknown.raw).map_err(|error| Status::unfit(kind, &kind.kind, error))
    }
}

/// Gives an object the form it has when it is encoded, with its kind and version. Answers what was dropped.
pub(crate) fn finish(
    object: &mut Object,
    form: &Form,
    kind: &GroupVersionKind,
) -> Result<Vec<Violation>, Status> {
    let dropped = form.normalize(object, Source::Read);
    let dropped = dropped.map_err(|error| Status::unfit(kind, &kind.kind, error))?;
    object.insert("kind".to_owned(), Value::from(kind.kind.as_str()));
    object.insert("apiVersion".to_owned(), Value::from(kind.group_version().to_string()));
    Ok(dropped)
}

fn read(body: Body<'_>, options: &Options<'_>) -> Result<Decoded, DecodeError> {
    match body.media_type {
        MediaType::Yaml => decode_yaml(body.bytes, options),
        _ => decode(body.bytes, options),
    }
}

fn undecodable(error: &DecodeError, kind: &GroupVersionKind, summary: &str) -> Status {
    if matches!(error, DecodeError::TooLarge { .. }) {
        return Status::body_too_large();
    }
    // Upstream knows what the object says it is only once it could be read that far.
    let seen = TypeMeta { group: kind.group.clone(), version: kind.version.clone(), kind: kind.kind.clone() };
    Status::bad_request(bad_object(error, &seen, &kind.kind, summary))
}

/// Kinds of the API machinery, which upstream knows in versions of all groups, or in the first of the core group.
const COMMON: [&str; 13] = [
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "List",
    "ListOptions",
    "PatchOptions",
    "Status",
    "UpdateOptions",
    "WatchEvent",
];

/// What an object is, and why that is not the kind it has to be; `exists` says which kinds there are.
fn other_kind(
    seen: &TypeMeta,
    kind: &GroupVersionKind,
    exists: impl Fn(&GroupVersionKind) -> bool,
) -> Result<(), (GroupVersionKind, String)> {
    let says_version = !seen.version.is_empty() || !seen.group.is_empty();
    let same_version = !says_version || (seen.group == kind.group && seen.version == kind.version);
    let same_kind = seen.kind.is_empty() || seen.kind == kind.kind;
    if same_version && same_kind {
        return Ok(());
    }
    let (group, version) = match says_version {
        true => (seen.group.as_str(), seen.version.as_str()),
        false => (kind.group.as_str(), kind.version.as_str()),
    };
    let name = if seen.kind.is_empty() { &kind.kind } else { &seen.kind };
    let body = GroupVersionKind::new(group, version, name.as_str());
    let why = if same_kind || !exists(&body) {
        format!(
            "no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            concord_meta::go::quote(name),
            concord_meta::go::quote(&body.group_version().to_string()),
        )
    } else {
        let package = match kind.group.split('.').next() {
            None | Some("") => "core",
            Some(package) => package,
        };
        format!("converting ({version}.{name}) to ({package}.{}): unknown conversion", kind.kind)
    };
    Err((body, why))
}

/// Refuses what strict decoding found, or warns of it.
fn report(
    violations: &[Violation],
    validation: FieldValidation,
    kind: &GroupVersionKind,
    context: &Context,
) -> Result<(), Status> {
    match validation {
        FieldValidation::Strict if !violations.is_empty() => {
            return Err(Status::unfit(kind, &kind.kind, strict_decoding_error(violations)));
        }
        FieldValidation::Warn => {
            let warnings = violations.iter().flat_map(Violation::warnings);
            warnings.for_each(|warning| context.warn(&warning));
        }
        _ => {}
    }
    Ok(())
}
