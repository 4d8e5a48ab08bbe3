use concord_codec::{
    DecodeError, FieldTree, FieldValidation, Limits, Options, PatchType, decode, decode_value, decode_yaml,
};
use concord_merge::JsonPatch;
use concord_meta::{Status, options::ReadAt};
use serde_json::{Value, json};

use super::{
    PatchRequest, Written,
    change::{Change, Strictness, refused},
    create::stored,
    size::Size,
    update::Edit,
};
use crate::{Context, Registry, Resource, remote::Conversions};

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
            Err(status) if request.patch_type == PatchType::Apply => return Err(status),
            // What is not there cannot be patched otherwise, whatever the patch is.
            Err(status) => {
                return Err(self.get(storage, name, ReadAt::MostRecent).await.err().unwrap_or(status));
            }
        };
        let (scaling, conversions, size) = (None, Conversions::default(), Size::default());
        self.edit(&Edit { context, resource, storage, name, part, change, scaling, conversions, size }).await
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
            let value = decode_value(body, Limits::default()).map_err(|error| undecodable(&error))?;
            let patch =
                JsonPatch::decode(&value).map_err(|error| refused(error.answer(), error.message()))?;
            Change::Json(patch, Strictness { validation, found: odd_operations(body, validation) })
        }
        PatchType::Merge => {
            let (patch, found) = object(body, validation).map_err(|error| undecodable(&error))?;
            Change::Merge(patch, Strictness { validation, found })
        }
        PatchType::StrategicMerge => {
            let (patch, found) =
                object(body, validation).map_err(|error| Status::bad_request(error.to_string()))?;
            // Go reads null as a map without entries.
            let patch = Some(patch).filter(|patch| !patch.is_null()).unwrap_or_else(|| json!({}));
            Change::Strategic(patch, Strictness { validation, found })
        }
        PatchType::Apply => Change::Apply { config: config(body, validation, context)?, force },
    })
}

fn undecodable(error: &DecodeError) -> Status {
    Status::bad_request(format!("error decoding patch: {error}"))
}

/// The object that a patch is, and the fields it has twice. One that is none is refused where it is merged, with the
/// words of that.
fn object(body: &[u8], validation: FieldValidation) -> Result<(Value, Vec<String>), DecodeError> {
    let value = decode_value(body, Limits::default())?;
    if !value.is_object() {
        return Ok((value, Vec::new()));
    }
    let decoded = decode(body, &Options { validation, ..Options::default() })?;
    let found = decoded.violations.iter().map(ToString::to_string).collect();
    Ok((Value::Object(decoded.object), found))
}

/// The fields that operations of a JSON patch have twice, or that no operation has.
fn odd_operations(body: &[u8], validation: FieldValidation) -> Vec<String> {
    let any = || FieldTree::Any;
    let operation = FieldTree::object([("op", any()), ("path", any()), ("from", any()), ("value", any())]);
    // Violations are found in objects; their paths then begin with this name.
    let fields = FieldTree::object([("p", FieldTree::List(Box::new(operation)))]);
    let wrapped = [br#"{"p":"#, body, b"}"].concat();
    let limits = Limits { max_bytes: wrapped.len(), ..Limits::default() };
    let decoded = decode(&wrapped, &Options { limits, validation, fields: Some(&fields) });
    let violations = decoded.map(|decoded| decoded.violations).unwrap_or_default();
    violations.iter().map(|violation| format!("json patch {violation}").replacen("\"p[", "\"[", 1)).collect()
}

/// What somebody wants an object to be: YAML, of which JSON is a part.
fn config(body: &[u8], validation: FieldValidation, context: &Context) -> Result<Value, Status> {
    let decoded = decode_yaml(body, &Options { validation, ..Options::default() });
    let decoded = decoded.map_err(|error| match error {
        DecodeError::NotAnObject { found } => Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into \
             Go value of type map[string]interface {{}}"
        )),
        DecodeError::Yaml(_) => {
            Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}"))
        }
        error => Status::bad_request(format!("error decoding YAML: {error}")),
    })?;
    let repeated: Vec<String> =
        decoded.violations.iter().flat_map(concord_codec::Violation::warnings).collect();
    if validation == FieldValidation::Strict && !decoded.violations.is_empty() {
        let texts: Vec<String> = decoded.violations.iter().map(ToString::to_string).collect();
        let texts = texts.join(", ");
        return Err(Status::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {texts}"
        )));
    }
    repeated.iter().for_each(|text| context.warn(text));
    Ok(Value::Object(decoded.object))
}
