//! What a request makes of an object, in the version of the request.

use concord_codec::{FieldValidation, Violation, type_meta};
use concord_merge::{
    Answer, JsonPatch,
    apply::{ApplyError, ApplyRequest, FieldManager, Versions, ignore_timestamps},
    format_plain, merge_patch,
    strategic::strategic_merge,
};
use concord_meta::{CauseType, GroupKind, REDACTED, Status, StatusCause, field};
use concord_schema::Place;
use serde_json::Value;

use super::{managed::field_manager, update::Edit};
use crate::{Context, Form, Object, Resource, form::Source, metadata};

/// The most levels an object may have: what bodies are limited to holds for what patches make, too.
const MAX_DEPTH: usize = 500;

/// How often a change is computed anew with more conversions at hand. Each version that an owner wrote takes at most two.
const MAX_ROUNDS: usize = 32;

/// How an object is to be changed.
pub(super) enum Change<'a> {
    /// It is to be this.
    Replace(Value),
    /// By a list of operations.
    Json(JsonPatch, Strictness),
    /// By an object that is laid over it.
    Merge(Value, Strictness),
    /// By an object that is laid over it, lists by their keys.
    Strategic(Value, Strictness),
    /// By what somebody wants it to be.
    Apply {
        /// That.
        config: Value,
        /// Whether to take what others own.
        force: bool,
    },
    /// By a function of what it is, which sees to the owners of fields itself.
    Set(&'a (dyn Fn(Option<&Value>) -> Result<Value, Status> + Send + Sync)),
}

/// What a change makes of an object.
type Make<'a> = &'a (dyn Fn() -> Result<Value, Status> + 'a);

/// What the refusal of a patch quotes.
type Shown<'a> = &'a (dyn Fn() -> String + 'a);

/// What is done about fields that should not be, and which a patch had itself.
#[derive(Default)]
pub(super) struct Strictness {
    pub(super) validation: FieldValidation,
    /// In upstream's words.
    pub(super) found: Vec<String>,
}

impl Strictness {
    /// Refuses or warns of what a patch had and what it made. `shown` is what the refusal quotes.
    fn check(&self, made: &[Violation], context: &Context, shown: Shown<'_>) -> Result<(), Status> {
        let mut texts = self.found.iter().cloned().chain(made.iter().map(Violation::to_string)).peekable();
        match self.validation {
            FieldValidation::Strict if texts.peek().is_some() => {
                let all = texts.collect::<Vec<_>>().join(", ");
                return Err(bad_patch(&shown(), &format!("strict decoding error: {all}")));
            }
            FieldValidation::Warn => texts.for_each(|text| context.warn(&text)),
            _ => {}
        }
        Ok(())
    }
}

impl Change<'_> {
    /// Whether an object that does not exist comes to be by this.
    pub(super) fn creates(&self) -> bool {
        matches!(self, Self::Apply { .. })
    }

    /// The changed object, with the record of who owns what, once all conversions that it takes have been made.
    pub(super) async fn carry_out(&self, edit: &Edit<'_>, live: Option<&Value>) -> Result<Object, Status> {
        for _ in 0..MAX_ROUNDS {
            let made = self.make(edit, live);
            if !edit.conversions.make(edit.storage).await {
                return made;
            }
        }
        Err(Status::internal_error("the object has owners in too many versions"))
    }

    /// The changed object, as far as it can be known without waiting.
    fn make(&self, edit: &Edit<'_>, live: Option<&Value>) -> Result<Object, Status> {
        let new = match self {
            Self::Replace(new) => owned(edit, live, new.clone())?,
            Self::Set(set) => set(live)?,
            Self::Apply { config, force } => apply(edit, live, config, *force)?,
            Self::Json(patch, strictness) => {
                let patched = || {
                    let patched = patch.apply(existing(edit, live)?);
                    patched.map_err(|error| refused(error.answer(), error.message()))
                };
                owned(edit, live, as_body(edit, &patched, strictness)?)?
            }
            Self::Merge(patch, strictness) => {
                let patched = || {
                    let patched = merge_patch(existing(edit, live)?, patch);
                    patched.map_err(|error| refused(error.answer(), error.message()))
                };
                owned(edit, live, as_body(edit, &patched, strictness)?)?
            }
            Self::Strategic(patch, strictness) => {
                let patched = strategic(edit, existing(edit, live)?, patch)?;
                // What is quoted is the patch, as Go prints a map.
                let shown = || quoted(edit.resource, || format_plain(patch));
                owned(edit, live, typed(edit, patched, Source::Map, strictness, &shown)?)?
            }
        };
        let new = match live {
            Some(live) => ignore_timestamps(live, new),
            None => new,
        };
        match new {
            Value::Object(object) => Ok(object),
            _ => Err(Status::unprocessable_patch()),
        }
    }
}

impl Change<'_> {
    /// What the change makes of something that is not stored itself, such as a Scale. Neither defaults nor the schema of
    /// a resource are applied.
    pub(super) fn make_with<V: Versions<Type = Place>>(
        &self,
        manager: &FieldManager<V>,
        context: &Context,
        live: &Value,
    ) -> Result<Value, Status> {
        let api_version = manager.kind.group_version().to_string();
        let new = match self {
            Self::Replace(new) => new.clone(),
            Self::Set(set) => return set(Some(live)),
            Self::Apply { config, force } => {
                let request =
                    ApplyRequest { config, manager: &context.manager, force: *force, now: context.now };
                return manager.apply(Some(live), request).map_err(|error| apply_refused(&error));
            }
            Self::Json(patch, _) => {
                patch.apply(live.clone()).map_err(|error| refused(error.answer(), error.message()))?
            }
            Self::Merge(patch, _) => {
                merge_patch(live.clone(), patch).map_err(|error| refused(error.answer(), error.message()))?
            }
            Self::Strategic(patch, _) => {
                let Some(place) = manager.versions.type_of(&api_version) else {
                    return Err(Status::unprocessable_patch());
                };
                strategic_merge(live.clone(), patch.clone(), &place)
                    .map_err(|error| refused(error.answer(), error.message()))?
            }
        };
        Ok(manager.update(Some(live), new, &context.manager, context.now))
    }
}

fn existing(edit: &Edit<'_>, live: Option<&Value>) -> Result<Value, Status> {
    live.cloned().ok_or_else(|| Status::not_found(&edit.storage.resource, edit.name.name))
}

/// The new object with the record of owners that follows from what changed.
fn owned(edit: &Edit<'_>, live: Option<&Value>, new: Value) -> Result<Value, Status> {
    if !new.as_object().is_none_or(|new| edit.size.fits(edit.context, new)) {
        return Ok(new);
    }
    let manager = field_manager(edit.resource, edit.storage, edit.part, &edit.conversions);
    Ok(manager.update(live, new, &edit.context.manager, edit.context.now))
}

fn strategic(edit: &Edit<'_>, live: Value, patch: &Value) -> Result<Value, Status> {
    let Some(schema) = edit.resource.schema() else {
        return Err(Status::unsupported_media_type(&[
            "application/json-patch+json",
            "application/merge-patch+json",
        ]));
    };
    strategic_merge(live, patch.clone(), schema.patch_schema())
        .map_err(|error| refused(error.answer(), quoted(edit.resource, || error.message())))
}

fn apply(edit: &Edit<'_>, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, Status> {
    let uid = config.as_object().map_or("", |config| metadata(config).uid());
    if live.is_none() && !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(Status::conflict(&edit.storage.resource, edit.name.name, why));
    }
    let lenient = Strictness { validation: FieldValidation::Ignore, found: Vec::new() };
    if !config.as_object().is_none_or(|config| edit.size.fits(edit.context, config)) {
        // Whether it is valid together with what others want takes what it is not worth.
        live.map_or(Ok(()), |_| edit.size.check())?;
        let shown = || shown(edit, &|| Ok(config.clone()));
        return typed(edit, config.clone(), Source::Map, &lenient, &shown);
    }
    let manager = field_manager(edit.resource, edit.storage, edit.part, &edit.conversions);
    let context = edit.context;
    let request = ApplyRequest { config, manager: &context.manager, force, now: context.now };
    let applied =
        || manager.apply(live, request).map_err(|error| apply_refused(&discreet(edit.resource, error)));
    typed(edit, applied()?, Source::Map, &lenient, &|| shown(edit, &applied))
}

/// What came out of a JSON or merge patch, which is read as a body would be: it may not say that it is something else.
fn as_body(edit: &Edit<'_>, make: Make<'_>, strictness: &Strictness) -> Result<Value, Status> {
    let patched = make()?;
    if let Value::Object(object) = &patched {
        let seen = type_meta(object).map_err(|error| error.to_string());
        if let (Ok(seen), Some(Form::Custom(_))) = (&seen, edit.resource.form()) {
            edit.resource.check_custom_type(seen, object)?;
        }
        let said = seen
            .and_then(|seen| edit.resource.other_kind(&seen, &edit.resource.kind()).map_err(|(_, why)| why));
        said.map_err(|why| bad_patch(&quoted(edit.resource, || text(object)), &why))?;
    }
    typed(edit, patched, Source::Body, strictness, &|| shown(edit, make))
}

/// What a patch makes, as it stands in the refusal of it. It is made again for that: almost no patch is refused, and what
/// became of the first has another form by then.
fn shown(edit: &Edit<'_>, make: Make<'_>) -> String {
    let made = || make().ok().as_ref().and_then(Value::as_object).map(text).unwrap_or_default();
    quoted(edit.resource, made)
}

/// What a patch made, as it stands in the refusal of it.
pub(super) fn text(object: &Object) -> String {
    String::from_utf8_lossy(&concord_codec::encode(&Value::Object(object.clone()))).into_owned()
}

/// Brings what a patch made into the form of its kind, with defaults. Upstream reads what came out
/// of JSON and merge patches as a body, and what came out of the others as a map: `source` says which.
fn typed(
    edit: &Edit<'_>,
    patched: Value,
    source: Source,
    strictness: &Strictness,
    shown: Shown<'_>,
) -> Result<Value, Status> {
    if concord_codec::depth_exceeds(&patched, MAX_DEPTH) {
        return Err(Status::unprocessable_patch());
    }
    let Value::Object(mut object) = patched else { return Err(Status::unprocessable_patch()) };
    let Some(form) = edit.resource.form() else { return Ok(Value::Object(object)) };
    let unknown = form.normalize(&mut object, source).map_err(|error| bad_patch(&shown(), &error))?;
    strictness.check(&unknown, edit.context, shown)?;
    let kind = edit.resource.kind();
    object.insert("kind".to_owned(), kind.kind.as_str().into());
    object.insert("apiVersion".to_owned(), kind.group_version().to_string().into());
    edit.resource.apply_defaults(&mut object).map_err(|why| bad_patch(&shown(), &why))?;
    Ok(Value::Object(object))
}

/// What a refusal quotes, unless it is a secret.
fn quoted(resource: &Resource, text: impl FnOnce() -> String) -> String {
    match resource.is_confidential() {
        true => REDACTED.to_owned(),
        false => text(),
    }
}

/// 422 about the patch itself.
pub(super) fn bad_patch(patch: &str, why: &str) -> Status {
    let error = field::Error::invalid(&field::Path::new("patch"), patch, why.to_owned());
    Status::invalid(&GroupKind::new("", ""), "", &[error])
}

pub(super) fn refused(answer: Answer, message: String) -> Status {
    match answer {
        Answer::BadRequest => Status::bad_request(message),
        Answer::RequestEntityTooLarge => {
            let text = message.strip_prefix("Request entity too large: ").unwrap_or(&message);
            Status::request_entity_too_large(text)
        }
        Answer::Invalid => Status::unprocessable_patch(),
        Answer::Conflict | Answer::Untyped => Status::untyped(message),
    }
}

/// A value that does not fit is quoted behind the type that it should have. All from the first one on is left out.
fn discreet(resource: &Resource, error: ApplyError) -> ApplyError {
    match error {
        ApplyError::Failed(why) if resource.is_confidential() => {
            let end = why.find(", got ").map_or(why.len(), |at| at + ", got ".len());
            let rest = if end < why.len() { REDACTED } else { "" };
            ApplyError::Failed(format!("{}{rest}", &why[..end]))
        }
        error => error,
    }
}

fn apply_refused(error: &ApplyError) -> Status {
    let ApplyError::Conflicts(conflicts) = error else { return refused(error.answer(), error.message()) };
    let causes = conflicts.causes().into_iter().map(|cause| StatusCause {
        reason: CauseType::FIELD_MANAGER_CONFLICT,
        message: cause.message,
        field: cause.field,
    });
    Status::apply_conflict(causes.collect(), error.message())
}
