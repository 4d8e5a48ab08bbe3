use concord_codec::{
    DecodeError, FieldValidation, Limits, Options, PatchType, decode, decode_value, decode_yaml,
};
use concord_merge::JsonPatch;
use concord_meta::{Status, options::ReadAt};
use serde_json::Value;

use super::{
    PatchRequest, Written,
    change::{Change, refused},
    create::stored,
    update::Edit,
};
use crate::{Context, Registry, Resource};

impl Registry {
    /// Changes an object by a patch. One that does not say from which state it was made is applied again until nobody
    /// changes the object in between.
    ///
    /// # Errors
    ///
    /// Every refusal of a patch, as a Status.
    pub async fn patch(
        &self,
        context: &Context,
        resource: &Resource,
        request: PatchRequest<'_>,
    ) -> Result<Written, Status> {
        let storage = stored(resource)?;
        let PatchRequest { name, part, .. } = request;
        let change = match read(&request, context) {
            Ok(change) => change,
            // What is not there cannot be patched, whatever the patch is.
            Err(status) => {
                return Err(self.get(storage, name, ReadAt::MostRecent).await.err().unwrap_or(status));
            }
        };
        self.edit(&Edit { context, resource, storage, name, part, change }).await
    }
}

/// The change that the body of a patch stands for.
pub(super) fn read<'a>(request: &PatchRequest<'_>, context: &Context) -> Result<Change<'a>, Status> {
    let PatchRequest { body, validation, force, .. } = *request;
    if body.len() > Limits::default().max_bytes {
        return Err(Status::body_too_large());
    }
    Ok(match request.patch_type {
        PatchType::Json => {
            let body = decode_value(body, Limits::default()).map_err(|error| undecodable(&error))?;
            let patch = JsonPatch::decode(&body).map_err(|error| refused(error.answer(), error.message()))?;
            Change::Json(patch, validation)
        }
        PatchType::Merge => {
            let patch = object(body, validation, context).map_err(|error| undecodable(&error))?;
            Change::Merge(patch?, validation)
        }
        PatchType::StrategicMerge => {
            let patch =
                object(body, validation, context).map_err(|error| Status::bad_request(error.to_string()))?;
            Change::Strategic(patch?, validation)
        }
        PatchType::Apply => Change::Apply { config: config(body, validation, context)?, force },
    })
}

fn undecodable(error: &DecodeError) -> Status {
    Status::bad_request(format!("error decoding patch: {error}"))
}

/// The object that a patch is. One that is none is refused where it is merged, with the words of that.
fn object(
    body: &[u8],
    validation: FieldValidation,
    context: &Context,
) -> Result<Result<Value, Status>, DecodeError> {
    let value = decode_value(body, Limits::default())?;
    if !value.is_object() {
        return Ok(Ok(value));
    }
    let decoded = decode(body, &Options { validation, ..Options::default() })?;
    if validation == FieldValidation::Strict && !decoded.violations.is_empty() {
        let text = concord_codec::strict_decoding_error(&decoded.violations);
        return Ok(Err(super::change::bad_patch(&String::from_utf8_lossy(body), &text)));
    }
    decoded
        .violations
        .iter()
        .flat_map(concord_codec::Violation::warnings)
        .for_each(|text| context.warn(&text));
    Ok(Ok(Value::Object(decoded.object)))
}

/// What somebody wants an object to be: YAML, of which JSON is a part.
fn config(body: &[u8], validation: FieldValidation, context: &Context) -> Result<Value, Status> {
    let decoded = decode_yaml(body, &Options { validation, ..Options::default() });
    let decoded = decoded.map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    let repeated: Vec<String> =
        decoded.violations.iter().flat_map(concord_codec::Violation::warnings).collect();
    if validation == FieldValidation::Strict && !decoded.violations.is_empty() {
        let texts: Vec<String> = decoded.violations.iter().map(ToString::to_string).collect();
        return Err(Status::bad_request(format!("error strict decoding YAML: {}", texts.join(", "))));
    }
    repeated.iter().for_each(|text| context.warn(text));
    Ok(Value::Object(decoded.object))
}
